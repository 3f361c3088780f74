"""The recording of a launch while it is simulated: all that it leaves behind on its chip."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from runtime.core.coordinates import PeCoordinates
from runtime.core.requests import KernelLaunchMsg
from runtime.core.trace import OpRecord
from sip_node.chip.host.commands import CommandDone
from sip_node.chip.launch_keys import LaunchKey
from sip_node.chip.launches.chip_state import ChipState, SliceOfHbm, Snapshot
from sip_node.chip.launches.idle_engines import EngineChanges, EngineState, IdleEngines
from sip_node.chip.launches.launch_template import (
    AnswerArrival,
    ComputedValues,
    LaunchChanges,
    LaunchTemplate,
    PassengerStage,
    RecordedRows,
    SlotsInTurn,
)
from sip_node.chip.launches.learned_slice import LearnedSlice, SliceChanges
from sip_node.chip.launches.recorded_numbers import RecordedNumbers
from sip_node.chip.launches.relocation import ExternalMemories, Relocation
from sip_node.chip.launches.slice_traffic import SliceTraffic
from sip_node.chip.launches.tile_slots import TileSlots, Turn, turns_of
from sip_node.chip.memory.memory_packets import MemoryPackets
from sip_node.chip.memory.packet_arrivals import PacketArrivals

if TYPE_CHECKING:
    from sip_node.chip.records.kept.kept_records import KeptRecords

VALUE_BYTES = 3 << 10
"""Bytes of memory for the record of an operation that is computed again, about."""
PE_BYTES = 2 << 10
"""Bytes of memory for a PE, about: its engines, its tensors, its slice of HBM."""

SlotsOf = Callable[["KeptRecords"], Sequence[SlotsInTurn]]
"""Finds the slots of memory that records use."""


class _Begin(NamedTuple):
    """The state of the chip when a launch begins: some 200 kB, which are dropped at its end."""

    servers: Snapshot
    engines: IdleEngines
    engine_states: Sequence[EngineState]
    sent: int
    delivered: int


class _Left(NamedTuple):
    """All that a launch has left behind at its end."""

    operations: Sequence[OpRecord]
    changes: LaunchChanges
    turns: list[list[Turn]]
    rows: RecordedRows | None


class LaunchRecording:
    """The recording of a launch with a key, which begins now on an idle chip; of one that needs
    more than `most_bytes` for its records, nothing is left.
    """

    def __init__(
        self, chip: ChipState, launch: KernelLaunchMsg, key: LaunchKey, most_bytes: int
    ) -> None:
        # In C only, where launches are repeated.
        from sip_node.chip.records.kept.kept_records import KeptRecords

        self._chip, self.launch, self.key = chip, launch, key
        sip, log = chip.context.sip, chip.log
        self._pes = [chip.chip.pe(PeCoordinates(sip, *each)) for each in launch.pes]
        self.begin_ps = chip.engine.now_ps
        engines, self._turns = IdleEngines(self._pes), turns_of(self._pes)
        self._before: _Begin | None = _Begin(
            chip.read(), engines, engines.read(), chip.fabric.sent, chip.fabric.delivered
        )
        self._first_record = log.count
        self._programs: list[bytes] = []
        self._begun = self._kernels = 0
        if log.recorder is not None:
            self._programs = log.recorder.keep_programs()
            log.steps.keep()
            log.recorder.calls.keep()
            self._begun, self._kernels = log.steps.begun, log.recorder.programs
        has_waits = log.recorder is not None
        self._kept = KeptRecords(self.begin_ps, self._begun, most_bytes, has_waits=has_waits)
        log.begin_keeping(self._kept)
        # Values are computed from the records themselves.
        self._operations: list[OpRecord] = log.begin_recording() if chip.context.data else []
        for each in chip.slices.values():
            packets = _packets_of(each)
            packets.arrivals = PacketArrivals(self.begin_ps, packets.turns)
        for bins in chip.bins():
            bins.begin_log()
        self._left: _Left | None = None
        self._slices: dict[int, LearnedSlice] = {}

    @property
    def entered(self) -> int:
        """The number of its records so far, without those of the host."""
        return len(self._kept)

    @property
    def is_full(self) -> bool:
        """Whether its records have needed too many bytes."""
        return self._kept.is_full

    @property
    def nbytes(self) -> int:
        """Bytes of memory that it leaves behind, about."""
        nbytes = self._kept.nbytes + VALUE_BYTES * len(self._operations)
        nbytes += sum(each.nbytes for each in self._slices.values()) + PE_BYTES * len(self._pes)
        if self._left is not None:
            rows = self._left.rows
            nbytes += self._left.changes.servers.nbytes
            nbytes += 0 if rows is None else len(rows.steps) + rows.calls.nbytes
        return nbytes

    def stop(self) -> None:
        """Record nothing more."""
        chip, log = self._chip, self._chip.log
        log.end_keeping(self._kept)
        log.end_recording(self._operations)
        if log.recorder is not None:
            log.steps.end_keeping()
            log.recorder.end_keeping()
            log.recorder.calls.end_keeping()
        for each in chip.slices.values():
            _packets_of(each).arrivals = None
        for bins in chip.bins():
            bins.end_log()

    def leave(
        self,
        arrivals: Sequence[AnswerArrival] = (),
        stages: Sequence[PassengerStage] = (),
        events: int = 0,
    ) -> bool:
        """The launch ends now, with these answers to earlier commands, after `events`; returns
        whether all that it leaves behind is recorded.
        """
        chip, begin_ps = self._chip, self.begin_ps
        before, self._before = self._before, None
        assert before is not None, "a launch ends once"
        if self.is_full or not self._learn_slices(before.servers):
            return False
        self._kept.trim()
        after, now_ps = chip.read(), chip.engine.now_ps
        channels = {id(bins) for each in chip.slices.values() for bins in each.bins}
        changes = LaunchChanges(
            servers=chip.servers.changes(before.servers.servers, after.servers, begin_ps, now_ps),
            engines=EngineChanges(
                before.engines, before.engine_states, before.engines.read(), begin_ps
            ),
            services=[
                bins.template(0) for bins in chip.bins() if bins.logged and id(bins) not in channels
            ],
            slices=self._slices,
            sent=chip.fabric.sent - before.sent,
            delivered=chip.fabric.delivered - before.delivered,
            events=events,
            arrivals=arrivals,
            stages=stages,
            done=CommandDone(),
            # The kernels start when the IO_CPU has ended its part.
            start_after_ps=self._kept.first_end_ps("io_cpu") - begin_ps,
            duration_ps=now_ps - begin_ps,
            begin_ps=begin_ps,
        )
        operations = [each for each in self._operations if each.engine != "host"]
        self._left = _Left(operations, changes, turns_of(self._pes), self._rows())
        return True

    @property
    def operations(self) -> Sequence[OpRecord]:
        """The records that it has left behind, in a run with data."""
        assert self._left is not None, "a launch is repeated after its end"
        return self._left.operations

    def template(
        self,
        done: CommandDone,
        memories: ExternalMemories,
        values: ComputedValues | None,
        others: SlotsOf = lambda _: (),
    ) -> LaunchTemplate:
        """The template that it is, with the answer `done` and blocks in `memories`; raises
        `NotRepeated`. The slots of `others` are taken in turn, beside those of tiles.
        """
        assert self._left is not None, "a launch is repeated after its end"
        _, changes, turns, rows = self._left
        kept, pes = self._kept, self.launch.pes
        places = {each: number for number, each in enumerate(pes)}
        done = CommandDone(done.start_ps - self.begin_ps, done.end_ps - self.begin_ps)
        # In this order: the parts of tensors are behind those of slots.
        slots = (*others(kept), TileSlots(self._pes, self._turns, turns, kept))
        mmus = [pe.mmu for pe in self._pes]
        return LaunchTemplate(
            records=kept,
            slots=slots,
            relocation=Relocation(self.key.addresses, pes, mmus, kept, memories),
            numbers=RecordedNumbers(kept.numbers.values(), places, self.key.numbers),
            values=values,
            changes=changes._replace(done=done),
            rows=rows,
        )

    def _learn_slices(self, begin: Snapshot) -> bool:
        """Take what the slices of HBM have done; whether the packets of all of them are known."""
        chip, now_ps = self._chip, self._chip.engine.now_ps
        hbm = chip.context.topology.hbm
        for node, each in chip.slices.items():
            arrivals = _packets_of(each).arrivals
            # One that the launch is the first to reach has no list of them.
            if arrivals is None:
                return False
            if arrivals.transfers:
                before, after = begin.channels[node], each.states.read()
                learned = SliceChanges(
                    each.states.changes(before, after, self.begin_ps, now_ps),
                    [bins.template(0) for bins in each.bins],
                    self.begin_ps,
                )
                self._slices[node] = LearnedSlice(
                    learned,
                    SliceTraffic(chip.context, node, arrivals),
                    each.states,
                    each.bins,
                    hbm.num_pcs * hbm.burst_bytes,
                )
        return True

    def _rows(self) -> RecordedRows | None:
        log = self._chip.log
        if log.recorder is None:
            return None
        return RecordedRows(
            steps=log.steps.kept_steps(),
            programs=tuple(self._programs),
            step=self._begun,
            program=self._kernels,
            record=self._first_record,
            begun=log.steps.begun - self._begun,
            kernels=log.recorder.programs - self._kernels,
            calls=log.recorder.calls.kept_calls(),
        )


def _packets_of(slice_: SliceOfHbm) -> MemoryPackets:
    """The packets of a slice."""
    return slice_.controller.port.packets
