"""A launch that is simulated, and recorded so that it may be repeated."""

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from runtime.core.coordinates import PeCoordinates
from runtime.core.requests import KernelLaunchMsg
from runtime.core.trace import Operand, OpRecord
from sip_node.chip.fabric.packet import FabricTransfer
from sip_node.chip.host.commands import CommandDone
from sip_node.chip.launch_keys import LaunchKey
from sip_node.chip.launches.chip_state import ChipState
from sip_node.chip.launches.idle_engines import EngineChanges, IdleEngines
from sip_node.chip.launches.launch_template import (
    AnswerArrival,
    LaunchChanges,
    LaunchTemplate,
    PassengerStage,
    RecordedRows,
)
from sip_node.chip.launches.launch_values import LaunchValues
from sip_node.chip.launches.learned_slice import LearnedSlice, SliceChanges
from sip_node.chip.launches.passengers import Passenger
from sip_node.chip.launches.recorded_numbers import RecordedNumbers
from sip_node.chip.launches.relocation import BlockUse, Relocation
from sip_node.chip.launches.slice_traffic import SliceTraffic
from sip_node.chip.launches.tile_slots import TileSlots, Turn, turns_of

if TYPE_CHECKING:
    pass

MOST_OF_A_LAUNCH = 1 << 16
"""The records of a launch that is repeated."""


class _Left(NamedTuple):
    """All that a launch has left behind at its end."""

    records: list[OpRecord]
    waits: list[Any]
    changes: LaunchChanges
    turns: list[list[Turn]]
    rows: RecordedRows | None


class LearnedLaunch:
    """A launch that begins now on an idle chip, with `passengers`.

    `key` and `state` are what another launch has to have in common with it; `tag` is that of its
    request.
    """

    def __init__(
        self,
        chip: ChipState,
        tag: int,
        launch: KernelLaunchMsg,
        key: LaunchKey,
        passengers: Sequence[Passenger],
        state: Hashable,
    ) -> None:
        self._chip, self.tag, self.launch, self.key = chip, tag, launch, key
        self.passengers, self.state = passengers, state
        sip, log = chip.context.sip, chip.log
        self._pes = [chip.chip.pe(PeCoordinates(sip, *each)) for each in launch.pes]
        self._begin_ps, self._scheduled = chip.engine.now_ps, chip.engine.scheduled
        self._before, self._foreign = chip.read(), self._of_others()
        self._functions = chip.context.launch_keys.functions(sip)
        self._engines = IdleEngines(self._pes)
        self._engines_before, self._turns = self._engines.read(), turns_of(self._pes)
        self._sent, self._delivered = chip.fabric.sent, chip.fabric.delivered
        self._first_record, self._records = log.count, log.begin_recording()
        self._steps: bytearray | None = None
        self._programs: list[bytes] = []
        self._begun = self._kernels = 0
        if log.recorder is not None:
            self._steps, self._programs = log.steps.keep(), log.recorder.keep_programs()
            log.recorder.calls.keep()
            self._begun, self._kernels = log.steps.begun, log.recorder.programs
        for each in chip.slices.values():
            each.controller.port.packets.arrivals = []
        for bins in chip.bins():
            bins.begin_log()
        self._arrivals: list[AnswerArrival] = []
        self._left: _Left | None = None
        self._slices: dict[int, LearnedSlice] = {}

    @property
    def size(self) -> int:
        """The number of its records."""
        return len(self._records)

    def answered(self, transfer: FabricTransfer) -> None:
        """An answer has arrived at the host, which has not recorded it yet."""
        for number, each in enumerate(self.passengers):
            if each.packet.transfer is transfer:
                after_ps = self._chip.engine.now_ps - self._begin_ps
                own = sum(record.engine != "host" for record in self._records)
                self._arrivals.append(AnswerArrival(after_ps, own, number))

    def stop(self) -> None:
        """Record nothing more."""
        chip, log = self._chip, self._chip.log
        log.end_recording(self._records)
        if log.recorder is not None:
            log.steps.end_keeping()
            log.recorder.end_keeping()
            log.recorder.calls.end_keeping()
        for each in chip.slices.values():
            each.controller.port.packets.arrivals = None
        for bins in chip.bins():
            bins.end_log()

    def end(self, done: CommandDone) -> bool:
        """The launch ends now; returns whether it can be repeated: nothing else was at work."""
        chip, begin_ps = self._chip, self._begin_ps
        pending = chip.engine.pending(chip.fabric.actor)
        if pending is None or self._of_others() != self._foreign:
            return False
        if chip.context.launch_keys.functions(chip.context.sip) != self._functions:
            return False
        numbers = {id(each.packet): number for number, each in enumerate(self.passengers)}
        if any(id(packet) not in numbers for *_, packet in pending):
            return False
        waits = chip.log.waits(self._records)
        own = [number for number, each in enumerate(self._records) if each.engine != "host"]
        if len(own) > MOST_OF_A_LAUNCH or not self._learn_slices():
            return False
        records = [self._records[number] for number in own]
        after, now_ps = chip.read(), chip.engine.now_ps
        channels = {id(bins) for each in chip.slices.values() for bins in each.bins}
        changes = LaunchChanges(
            servers=chip.servers.changes(self._before.servers, after.servers, begin_ps, now_ps),
            engines=EngineChanges(
                self._engines, self._engines_before, self._engines.read(), begin_ps
            ),
            services=[
                bins.template(0) for bins in chip.bins() if bins.logged and id(bins) not in channels
            ],
            slices=self._slices,
            sent=chip.fabric.sent - self._sent,
            delivered=chip.fabric.delivered - self._delivered,
            events=(chip.engine.scheduled - self._scheduled + len(self.passengers) - len(pending)),
            arrivals=self._arrivals,
            stages=[
                PassengerStage(numbers[id(packet)], time_ps - begin_ps, step, tail_ps - begin_ps)
                for time_ps, step, tail_ps, packet in pending
            ],
            done=CommandDone(done.start_ps - begin_ps, done.end_ps - begin_ps),
            # The IO_CPU's record of the launch, which is the first, ends at the start.
            start_after_ps=records[0].end_ps - begin_ps,
            duration_ps=now_ps - begin_ps,
            begin_ps=begin_ps,
        )
        waited = [waits[number] for number in own]
        self._left = _Left(records, waited, changes, turns_of(self._pes), self._rows())
        return True

    def template(self) -> LaunchTemplate:
        """The template that it is; raises `NotRepeated`.

        Made when the launch comes again, since many do not.
        """
        from sip_node.chip.launches.repeated_records import RepeatedRecords

        assert self._left is not None, "a launch is repeated after its end"
        records, waits, changes, turns, rows = self._left
        chip, places = self._chip, {each: number for number, each in enumerate(self.launch.pes)}
        return LaunchTemplate(
            records=RepeatedRecords(chip.log, records, waits, self._begin_ps),
            originals=records,
            relocation=self._relocation(records, places),
            numbers=RecordedNumbers(records, places, self.key.numbers),
            slots=TileSlots(self._pes, self._turns, turns, records),
            values=LaunchValues(records, chip.place_of) if chip.context.data else None,
            changes=changes,
            rows=rows,
        )

    def _of_others(self) -> tuple[int, ...]:
        """Counts that do not change while nothing but a launch is at work: commands of the host,
        messages of other SIPs, products that may be fast-forwarded.
        """
        chip, forward = self._chip.chip, self._chip.context.forward
        taken = 0 if forward is None else forward.taken
        return chip.host.streams.submitted, chip.boundary.sent, chip.boundary.received, taken

    def _learn_slices(self) -> bool:
        """Take what the slices of HBM have done; whether the packets of all of them are known."""
        chip, now_ps = self._chip, self._chip.engine.now_ps
        hbm = chip.context.topology.hbm
        for node, (controller, states, bins) in chip.slices.items():
            arrivals = controller.port.packets.arrivals
            # One that the launch is the first to reach has no list of them.
            if arrivals is None:
                return False
            if arrivals:
                before, after = self._before.channels[node], states.read()
                learned = SliceChanges(
                    states.changes(before, after, self._begin_ps, now_ps),
                    [each.template(0) for each in bins],
                    self._begin_ps,
                )
                self._slices[node] = LearnedSlice(
                    learned,
                    SliceTraffic(chip.context, node, arrivals, self._begin_ps),
                    states,
                    bins,
                    hbm.num_pcs * hbm.burst_bytes,
                )
        return True

    def _rows(self) -> RecordedRows | None:
        log = self._chip.log
        if self._steps is None:
            return None
        return RecordedRows(
            steps=bytes(self._steps),
            programs=tuple(self._programs),
            step=self._begun,
            program=self._kernels,
            record=self._first_record,
            begun=log.steps.begun - self._begun,
            kernels=log.recorder.programs - self._kernels,
            calls=log.recorder.calls.kept(),
        )

    def _relocation(
        self, records: Sequence[OpRecord], places: Mapping[tuple[int, int], int]
    ) -> Relocation:
        uses = [list[BlockUse]() for _ in self.launch.pes]
        for number, record in enumerate(records):
            if record.engine != "pe_dma":
                continue
            target = Operand(record.address, record.shape, record.dtype, record.strides)
            for index, block in enumerate((target, *record.inputs), -1):
                if isinstance(block, Operand) and self._chip.is_external(block):
                    uses[places[record.cube, record.pe]].append(BlockUse(number, index, block))
        mmus = [pe.mmu for pe in self._pes]
        return Relocation(self.key.addresses, mmus, uses, self._chip.context.locate)
