"""Repeats launches: one that begins as an earlier one has begun is not simulated again.

When a launch begins, the chip is idle but for answers that are on their way to the host. What it
does until its last kernel has ended follows from its commands and from the state at its begin: the
times at which servers are free, the slots that engines take next, the places of these answers. If
all of that is as it was at the begin of an earlier launch with the same commands, and nothing else
can come before the end, then everything happens as it has happened then:

    chip   |== launch, simulated: the template ==|   ...   |== repeated ==|
    host     ^ answer of the launch before                   ^

The values of a repetition are computed from its own tensors (`LaunchValues`).
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from runtime.core.compiled.choice import IS_COMPILED
from runtime.core.coordinates import PeCoordinates
from runtime.core.errors import PhysAddrError
from runtime.core.requests import KernelLaunchMsg
from runtime.core.trace import Operand, OpRecord
from runtime.model.schema.topology_schema import Implementations, Topology
from runtime.wire.environment import fold_requested
from sip_node.chip.fabric.packet import FabricTransfer, Kind, Packet
from sip_node.chip.host.commands import CommandDone, RequestDone
from sip_node.chip.launches.idle_engines import EngineChanges, IdleEngines
from sip_node.chip.launches.launch_key import LaunchKey, NotRepeated
from sip_node.chip.launches.launch_template import (
    AnswerArrival,
    LaunchTemplate,
    LearnedSlice,
    PassengerStage,
    RecordedRows,
    Repetition,
    SliceChanges,
)
from sip_node.chip.launches.launch_values import LaunchValues, MemoryPlace
from sip_node.chip.launches.relocation import BlockUse, Relocation
from sip_node.chip.launches.slice_traffic import SliceTraffic
from sip_node.chip.launches.tile_slots import TileSlots, turns_of
from sip_node.chip.memory.storage import HbmController, Sram
from sip_node.chip.pe.pe import Pe
from sip_node.kernel.calendar import ARRIVALS_FIRST

if TYPE_CHECKING or IS_COMPILED:
    from sip_node.compiled.repeated_records import RepeatedRecords
    from sip_node.compiled.server_states import ServerStates

if TYPE_CHECKING:
    from sip_node.chip.chip import Chip
    from sip_node.chip.context import ChipContext

MOST_RECORDS = 1 << 18
"""The records of all templates that are kept, some 150 MB; the templates used last are."""
MOST_OF_A_LAUNCH = 1 << 15
"""The records of a template."""
MOST_ATTEMPTS = 8
"""Launches with one key that become templates, or fail to."""


class _Passenger(NamedTuple):
    """An answer on its way to the host: when its head is where, and when its tail."""

    time_ps: int
    step: int
    tail_ps: int
    packet: Packet

    def stage(self, begin_ps: int) -> tuple[int, int, int]:
        """Where it is, at the begin of a launch."""
        return self.time_ps - begin_ps, self.step, self.tail_ps - begin_ps


class _LearnedLaunch:
    """A launch that is simulated, and may become a template: the state at its begin, and what it
    has recorded.
    """

    def __init__(
        self,
        *,
        tag: int,
        launch: KernelLaunchMsg,
        key: LaunchKey,
        state: Hashable,
        passengers: Sequence[_Passenger],
        pes: Sequence[Pe],
        begin_ps: int,
        scheduled: int,
        servers: Any,
        channels: dict[int, Any],
        engines: IdleEngines,
        counts: tuple[int, ...],
        packets: tuple[int, int],
        records: list[OpRecord],
        first_record: int,
        steps: bytearray | None,
        programs: list[bytes] | None,
        begun: int,
        kernels: int,
    ) -> None:
        self.tag, self.launch, self.key, self.state = tag, launch, key, state
        self.passengers, self.pes, self.begin_ps = passengers, pes, begin_ps
        self.scheduled, self.counts, self.packets = scheduled, counts, packets
        self.servers, self.channels = servers, channels
        self.engines, self.engine_states = engines, engines.read()
        self.turns = turns_of(pes)
        self.records, self.first_record = records, first_record
        self.steps, self.programs, self.begun, self.kernels = steps, programs, begun, kernels
        self.arrivals: list[AnswerArrival] = []


class LaunchTemplates:
    """The launches of one chip."""

    def __init__(self, topology: Topology) -> None:
        self._round_bytes = topology.hbm.num_pcs * topology.hbm.burst_bytes
        self._context: ChipContext
        self._chip: Chip
        self._engine: Any
        self._fabric: Any
        self._log: Any
        # The servers of components that exist, so many of them.
        self._servers, self._served = ServerStates(), 0
        self._slices: dict[int, Any] = {}
        self._channels: dict[int, ServerStates] = {}
        self._places: dict[int, MemoryPlace | None] = {}
        self._templates: OrderedDict[Hashable, list[LaunchTemplate]] = OrderedDict()
        self._attempts: dict[Hashable, int] = {}
        self._size = 0
        self._learning: _LearnedLaunch | None = None
        self.safe_ps: Callable[[], int] = lambda: 0
        """No message of another LP that has not arrived comes before this time."""
        self.hold_until: Callable[[int], None] = lambda _: None
        """Ends the run of the engine until that time is safe, or a message has arrived."""

    def connect(self, context: "ChipContext", chip: "Chip") -> None:
        """The launches are those of a chip, whose components exist now."""
        self._context, self._chip = context, chip
        self._engine, self._fabric, self._log = context.engine, context.fabric, context.log
        for server in self._fabric.servers:
            if server is not None:
                self._servers.add(server)

    def begin(
        self,
        tag: int,
        number: int,
        launch: KernelLaunchMsg,
        finish: Callable[[CommandDone], None],
        again: Callable[[], None],
    ) -> bool:
        """A launch of command `number` begins: whether it is not to be simulated.

        A repetition calls `finish` at its end; a simulation ends with `end`, with its `tag`. Where
        a message might come before that end, `again` is called once it is known whether one does.
        """
        self._abandon()
        if launch.thread != "kernels":
            return False
        passengers = self._passengers()
        if passengers is None:
            return False
        key = self._context.launch_keys.key(self._context.sip, number, launch)
        if key is None:
            return False
        now_ps = self._engine.now_ps
        state = key.commands, tuple([each.stage(now_ps) for each in passengers])
        for template in self._templates.get(state, ()):
            repetition = template.fits(key.addresses, now_ps)
            if repetition is None:
                continue
            end_ps = now_ps + template.duration_ps
            if end_ps >= self.safe_ps():
                # Nothing has happened yet: the launch begins again before all that is at this time.
                self._engine.at(now_ps, again, priority=ARRIVALS_FIRST)
                self._engine.ahead -= 1
                self.hold_until(end_ps)
                return True
            self._templates.move_to_end(state)
            self._repeat(template, repetition, passengers, number, launch, finish)
            return True
        self._learn(tag, launch, key, state, passengers)
        return False

    def answered(self, transfer: FabricTransfer) -> None:
        """An answer has arrived at the host, which has not recorded it yet."""
        learning = self._learning
        if learning is None:
            return
        for number, each in enumerate(learning.passengers):
            if each.packet.transfer is transfer:
                after_ps = self._engine.now_ps - learning.begin_ps
                records = sum(record.engine != "host" for record in learning.records)
                learning.arrivals.append(AnswerArrival(after_ps, records, number))

    def end(self, tag: int, done: CommandDone) -> None:
        """A request of the host is complete: it was a launch that is learned, or something else."""
        learning = self._learning
        if learning is None:
            return
        if learning.tag == tag:
            try:
                template = self._template(learning, done)
            except NotRepeated:
                template = None
            if template is not None:
                self._keep(learning.state, template)
        self._abandon()

    def _passengers(self) -> list[_Passenger] | None:
        """The answers on their way to the host; None if anything else is to come."""
        pending = self._engine.pending(self._fabric.actor)
        if pending is None:
            return None
        passengers = [_Passenger(*each) for each in pending]
        host = self._chip.host
        for each in passengers:
            transfer = each.packet.transfer
            if (
                transfer.kind is not Kind.CONTROL
                or not isinstance(transfer.body, RequestDone)
                # The program would go on, and might submit a command.
                or host.is_awaited(transfer.tag)
            ):
                return None
        return passengers

    def _learn(
        self,
        tag: int,
        launch: KernelLaunchMsg,
        key: LaunchKey,
        state: Hashable,
        passengers: Sequence[_Passenger],
    ) -> None:
        """Note the state at the begin of a launch, and record what it does."""
        attempts = self._attempts.get(key.commands, 0)
        if attempts >= MOST_ATTEMPTS:
            return
        self._attempts[key.commands] = attempts + 1
        pes = [self._chip.pe(PeCoordinates(self._context.sip, *each)) for each in launch.pes]
        self._add_servers()
        recorder = self._log.recorder
        self._learning = _LearnedLaunch(
            tag=tag,
            launch=launch,
            key=key,
            state=state,
            passengers=passengers,
            pes=pes,
            begin_ps=self._engine.now_ps,
            scheduled=self._engine.scheduled,
            servers=self._servers.read(),
            channels={node: states.read() for node, states in self._channels.items()},
            engines=IdleEngines(pes),
            counts=self._counts(),
            packets=(self._fabric.sent, self._fabric.delivered),
            records=self._log.begin_recording(),
            first_record=self._log.count,
            steps=None if recorder is None else self._log.steps.keep(),
            programs=None if recorder is None else recorder.keep_programs(),
            begun=0 if recorder is None else self._log.steps.begun,
            kernels=0 if recorder is None else recorder.programs,
        )
        for controller in self._slices.values():
            controller.port.packets.arrivals = []
        if self._context.loads is not None:
            for bins in self._bins():
                bins.begin_log()

    def _abandon(self) -> None:
        """Record nothing more of the launch that is learned, if one is."""
        learning, self._learning = self._learning, None
        if learning is None:
            return
        self._log.end_recording(learning.records)
        for controller in self._slices.values():
            controller.port.packets.arrivals = None
        if learning.steps is not None:
            self._log.steps.end_keeping()
            self._log.recorder.end_keeping()
        if self._context.loads is not None:
            for bins in self._bins():
                bins.end_log()

    def _bins(self) -> list[Any]:
        """The loads of all servers over time."""
        loads: Any = self._context.loads
        return [bins for _, _, bins in loads.watched]

    def _add_servers(self) -> None:
        """Know the servers of components that were made since."""
        for node, component in self._chip.components[self._served :]:
            match component:
                case Pe():
                    ports = component.fetch_store
                    for server in (component.tcm.server, ports.fetch.server, ports.store.server):
                        self._servers.add(server)
                case HbmController():
                    self._slices[node] = component
                    self._channels[node] = ServerStates()
                    self._channels[node].add_channels(component.channels)
                case Sram():
                    for server in component.ports.channels:
                        self._servers.add(server)
                case _:
                    pass
        self._served = len(self._chip.components)

    def _counts(self) -> tuple[int, ...]:
        """What does not change while nothing but a launch is at work: commands of the host,
        messages of other SIPs, products that are fast-forwarded.
        """
        forward, boundary = self._context.forward, self._chip.boundary
        taken = 0 if forward is None else forward.taken
        return self._chip.host.streams.submitted, boundary.sent, boundary.received, taken

    def _template(self, learning: _LearnedLaunch, done: CommandDone) -> LaunchTemplate | None:
        """The template that a launch becomes which ends now; None where it was not alone."""
        pending = self._engine.pending(self._fabric.actor)
        if pending is None or self._counts() != learning.counts:
            return None
        if not self._context.launch_keys.is_listed(learning.key, learning.launch):
            return None
        waits = self._log.waits(learning.records)
        own = [
            (record, waited)
            for record, waited in zip(learning.records, waits, strict=True)
            if record.engine != "host"
        ]
        if len(own) > MOST_OF_A_LAUNCH:
            return None
        begin_ps, now_ps = learning.begin_ps, self._engine.now_ps
        records = [record for record, _ in own]
        numbers = {id(each.packet): number for number, each in enumerate(learning.passengers)}
        stages = [
            PassengerStage(numbers[id(packet)], time_ps - begin_ps, step, tail_ps - begin_ps)
            for time_ps, step, tail_ps, packet in pending
            if id(packet) in numbers
        ]
        if len(stages) < len(pending):
            return None
        values = LaunchValues(records, self._place_of) if self._context.data else None
        if values is not None:
            values.check(records)
        self._add_servers()
        servers = self._servers.changes(
            learning.servers, self._servers.read(), begin_ps, now_ps
        )
        return LaunchTemplate(
            records=RepeatedRecords(
                self._log, records, [waited for _, waited in own], begin_ps
            ),
            originals=records,
            relocation=self._relocation(learning, records),
            values=values,
            servers=servers,
            engines=EngineChanges(
                learning.engines,
                learning.engine_states,
                learning.engines.read(),
                begin_ps,
            ),
            slots=TileSlots(learning.pes, learning.turns, turns_of(learning.pes), records),
            services=self._services(),
            slices=self._learned_slices(learning),
            rows=self._rows(learning),
            arrivals=learning.arrivals,
            stages=stages,
            done=CommandDone(done.start_ps - begin_ps, done.end_ps - begin_ps),
            start_after_ps=records[0].end_ps - begin_ps,
            duration_ps=now_ps - begin_ps,
            packets=(
                self._fabric.sent - learning.packets[0],
                self._fabric.delivered - learning.packets[1],
            ),
            events=(
                self._engine.scheduled
                - learning.scheduled
                + len(learning.passengers)
                - len(pending)
            ),
            begin_ps=begin_ps,
        )

    def _relocation(self, learning: _LearnedLaunch, records: Sequence[OpRecord]) -> Relocation:
        places = {each: number for number, each in enumerate(learning.launch.pes)}
        uses = [list[BlockUse]() for _ in learning.launch.pes]
        for number, record in enumerate(records):
            if record.engine != "pe_dma":
                continue
            target = Operand(record.address, record.shape, record.dtype, record.strides)
            for index, block in enumerate((target, *record.inputs), -1):
                if isinstance(block, Operand) and self._is_external(block):
                    uses[places[record.cube, record.pe]].append(BlockUse(number, index, block))
        mmus = [pe.mmu for pe in learning.pes]
        return Relocation(learning.key.addresses, mmus, uses, self._context.locate)

    def _services(self) -> list[Any]:
        """The services of all servers but the channels of HBM."""
        if self._context.loads is None:
            return []
        channels = {id(bins) for node in self._slices for bins in self._bins_of(node)}
        return [
            bins.template(0)
            for bins in self._bins()
            if bins.logged and id(bins) not in channels
        ]

    def _learned_slices(self, learning: _LearnedLaunch) -> dict[int, LearnedSlice]:
        """The slices of HBM that packets of the launch have reached."""
        begin_ps, now_ps = learning.begin_ps, self._engine.now_ps
        slices = dict[int, LearnedSlice]()
        for node, controller in self._slices.items():
            arrivals = controller.port.packets.arrivals
            # One that the launch is the first to reach has no list of them.
            if arrivals is None:
                raise NotRepeated("a slice of HBM that nothing had reached")
            if not arrivals:
                continue
            states, bins = self._channels[node], self._bins_of(node)
            changes = states.changes(
                learning.channels[node], states.read(), begin_ps, now_ps
            )
            services = [each.template(0) for each in bins]
            slices[node] = LearnedSlice(
                SliceChanges(changes, services, begin_ps),
                SliceTraffic(self._context, node, arrivals, begin_ps),
                states,
                bins,
                self._round_bytes,
            )
        return slices

    def _bins_of(self, node: int) -> list[Any]:
        """The loads of the channels of a slice over time, in a run with records."""
        if self._context.loads is None:
            return []
        return [channel.bins for channel in self._slices[node].channels.channels]

    def _rows(self, learning: _LearnedLaunch) -> RecordedRows | None:
        if learning.steps is None or learning.programs is None:
            return None
        return RecordedRows(
            steps=bytes(learning.steps),
            programs=tuple(learning.programs),
            step=learning.begun,
            program=learning.kernels,
            record=learning.first_record,
            begun=self._log.steps.begun - learning.begun,
            kernels=self._log.recorder.programs - learning.kernels,
        )

    def _keep(self, state: Hashable, template: LaunchTemplate) -> None:
        self._templates.setdefault(state, []).append(template)
        self._templates.move_to_end(state)
        self._size += template.size
        while self._size > MOST_RECORDS:
            _, dropped = self._templates.popitem(last=False)
            self._size -= sum(each.size for each in dropped)

    def _repeat(
        self,
        template: LaunchTemplate,
        repetition: Repetition,
        passengers: Sequence[_Passenger],
        number: int,
        launch: KernelLaunchMsg,
        finish: Callable[[CommandDone], None],
    ) -> None:
        """Do at once what a launch does that begins now."""
        engine, begin_ps, bounds = self._engine, self._engine.now_ps, self._context.send_bounds
        end_ps = begin_ps + template.duration_ps
        bounds.stamped(number, launch, begin_ps + template.start_after_ps)
        for pe in launch.pes:
            bounds.waiting(pe, launch.thread, lambda: end_ps, sends=False)
        template.repeat(repetition, begin_ps)
        self._fabric.sent += template.packets[0]
        self._fabric.delivered += template.packets[1]
        # The answers reach the host, or go on, as they did: between the same records.
        engine.withdraw()
        first_record, entered = self._log.count, 0
        for after_ps, records, passenger in template.arrivals:
            engine.at(begin_ps + after_ps, template.enter, entered, records, begin_ps)
            transfer = passengers[passenger].packet.transfer
            engine.at(begin_ps + after_ps, self._chip.host.answered, transfer)
            entered = records

        def end() -> None:
            template.enter(entered, template.size, begin_ps)
            self._repeat_rows(template, number, launch, begin_ps, first_record)
            for pe in launch.pes:
                bounds.ended(pe, launch.thread)
            done = template.done
            finish(CommandDone(begin_ps + done.start_ps, begin_ps + done.end_ps))

        engine.at(end_ps, end)
        for each in template.stages:
            packet = passengers[each.passenger].packet
            self._fabric.rejoin(
                packet,
                self._context.graph.io_cpu,
                each.step,
                begin_ps + each.after_ps,
                begin_ps + each.tail_after_ps,
            )
        engine.ahead += template.events - 2 * len(template.arrivals) - 1
        self._context.launch_keys.repeat(len(launch.pes))

    def _repeat_rows(
        self,
        template: LaunchTemplate,
        number: int,
        launch: KernelLaunchMsg,
        begin_ps: int,
        first_record: int,
    ) -> None:
        """Add the rows of a run with records."""
        rows = template.rows
        if rows is None:
            return
        moved_ps, recorder = begin_ps - template.begin_ps, self._log.recorder
        self._log.steps.repeat(
            rows.steps,
            self._log.steps.begun - rows.step,
            recorder.programs - rows.program,
            moved_ps,
            first_record - rows.record,
            rows.begun,
        )
        recorder.repeat_programs(
            rows.programs, rows.kernels, moved_ps, rows.program, number, launch.line
        )

    def _place_of(self, address: int) -> MemoryPlace | None:
        """The memory of an address; None for registers."""
        try:
            sip, node = self._context.locate(address)
        except PhysAddrError:
            return None
        if sip != self._context.sip:
            raise NotRepeated("a memory of another SIP")
        place = self._places.get(node)
        if place is None:
            port: Any = self._context.memory_ports[node]
            is_local = self._context.graph.nodes[node].kind == "pe"
            place = self._places[node] = MemoryPlace(port.memory, port.packets.base, is_local)
        return place

    def _is_external(self, block: Operand) -> bool:
        place = self._place_of(block.address)
        return place is not None and not place.is_local


def launch_templates(topology: Topology) -> LaunchTemplates | None:
    """The templates of the launches of a chip; None where launches are simulated: by the core in
    Python, with parts of a class of the user, with credits, with banks, and where the user switches
    it off.
    """
    is_modelled = (
        topology.impl == Implementations()
        and topology.noc.flow_control == "unlimited"
        and topology.hbm.model == "channels"
    )
    # In this order, so that a wrong value is an error with both cores.
    if not fold_requested() or not IS_COMPILED or not is_modelled:
        return None
    return LaunchTemplates(topology)
