"""The recording of a launch while it is simulated: all that it leaves behind on its chip."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from runtime.core.coordinates import PeCoordinates
from runtime.core.requests import KernelLaunchMsg
from runtime.core.trace import Operand, OpRecord
from sip_node.chip.host.commands import CommandDone
from sip_node.chip.launch_keys import LaunchKey
from sip_node.chip.launches.chip_state import ChipState, Snapshot
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
from sip_node.chip.launches.relocation import BlockUse, Relocation
from sip_node.chip.launches.slice_traffic import SliceTraffic
from sip_node.chip.launches.tile_slots import TileSlots, Turn, turns_of


class _Begin(NamedTuple):
    """The state of the chip when a launch begins: some 200 kB, which are dropped at its end."""

    servers: Snapshot
    engines: IdleEngines
    engine_states: Sequence[EngineState]
    sent: int
    delivered: int


class _Left(NamedTuple):
    """All that a launch has left behind at its end."""

    records: list[OpRecord]
    waits: list[Any]
    changes: LaunchChanges
    turns: list[list[Turn]]
    rows: RecordedRows | None


class LaunchRecording:
    """The recording of a launch with a key, which begins now on an idle chip."""

    def __init__(self, chip: ChipState, launch: KernelLaunchMsg, key: LaunchKey) -> None:
        self._chip, self.launch, self.key = chip, launch, key
        sip, log = chip.context.sip, chip.log
        self._pes = [chip.chip.pe(PeCoordinates(sip, *each)) for each in launch.pes]
        self.begin_ps = chip.engine.now_ps
        engines, self._turns = IdleEngines(self._pes), turns_of(self._pes)
        self._before: _Begin | None = _Begin(
            chip.read(), engines, engines.read(), chip.fabric.sent, chip.fabric.delivered
        )
        self._first_record, self.records = log.count, log.begin_recording()
        self._programs: list[bytes] = []
        self._begun = self._kernels = 0
        if log.recorder is not None:
            self._programs = log.recorder.keep_programs()
            log.steps.keep()
            log.recorder.calls.keep()
            self._begun, self._kernels = log.steps.begun, log.recorder.programs
        for each in chip.slices.values():
            each.controller.port.packets.arrivals = []
        for bins in chip.bins():
            bins.begin_log()
        self._left: _Left | None = None
        self._slices: dict[int, LearnedSlice] = {}

    @property
    def entered(self) -> int:
        """The number of its records so far, without those of the host."""
        return sum(record.engine != "host" for record in self.records)

    def stop(self) -> None:
        """Record nothing more."""
        chip, log = self._chip, self._chip.log
        log.end_recording(self.records)
        if log.recorder is not None:
            log.steps.end_keeping()
            log.recorder.end_keeping()
            log.recorder.calls.end_keeping()
        for each in chip.slices.values():
            each.controller.port.packets.arrivals = None
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
        waits = chip.log.waits(self.records)
        own = [number for number, each in enumerate(self.records) if each.engine != "host"]
        if not self._learn_slices(before.servers):
            return False
        records = [self.records[number] for number in own]
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
            start_after_ps=_start_ps(records) - begin_ps,
            duration_ps=now_ps - begin_ps,
            begin_ps=begin_ps,
        )
        waited = [waits[number] for number in own]
        self._left = _Left(records, waited, changes, turns_of(self._pes), self._rows())
        return True

    @property
    def own_records(self) -> list[OpRecord]:
        """The records that it has left behind."""
        assert self._left is not None, "a launch is repeated after its end"
        return self._left.records

    def template(
        self,
        done: CommandDone,
        is_external: Callable[[Operand], bool],
        values: ComputedValues | None,
        others: Sequence[SlotsInTurn] = (),
    ) -> LaunchTemplate:
        """The template that it is, with the answer `done`; raises `NotRepeated`.

        `is_external` is whether a block is in HBM or SRAM; the slots of `others` are taken in turn.
        """
        from sip_node.chip.launches.repeated_records import RepeatedRecords

        assert self._left is not None, "a launch is repeated after its end"
        records, waits, changes, turns, rows = self._left
        places = {each: number for number, each in enumerate(self.launch.pes)}
        done = CommandDone(done.start_ps - self.begin_ps, done.end_ps - self.begin_ps)
        return LaunchTemplate(
            records=RepeatedRecords(self._chip.log, records, waits, self.begin_ps, self._begun),
            inputs=[each.inputs for each in records],
            relocation=self._relocation(records, places, is_external),
            numbers=RecordedNumbers(records, places, self.key.numbers),
            slots=(TileSlots(self._pes, self._turns, turns, records), *others),
            values=values,
            changes=changes._replace(done=done),
            rows=rows,
        )

    def _learn_slices(self, begin: Snapshot) -> bool:
        """Take what the slices of HBM have done; whether the packets of all of them are known."""
        chip, now_ps = self._chip, self._chip.engine.now_ps
        hbm = chip.context.topology.hbm
        for node, (controller, states, bins) in chip.slices.items():
            arrivals = controller.port.packets.arrivals
            # One that the launch is the first to reach has no list of them.
            if arrivals is None:
                return False
            if arrivals:
                before, after = begin.channels[node], states.read()
                learned = SliceChanges(
                    states.changes(before, after, self.begin_ps, now_ps),
                    [each.template(0) for each in bins],
                    self.begin_ps,
                )
                self._slices[node] = LearnedSlice(
                    learned,
                    SliceTraffic(chip.context, node, arrivals, self.begin_ps),
                    states,
                    bins,
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

    def _relocation(
        self,
        records: Sequence[OpRecord],
        places: Mapping[tuple[int, int], int],
        is_external: Callable[[Operand], bool],
    ) -> Relocation:
        uses = [list[BlockUse]() for _ in self.launch.pes]
        for number, record in enumerate(records):
            if record.engine != "pe_dma":
                continue
            target = Operand(record.address, record.shape, record.dtype, record.strides)
            for index, block in enumerate((target, *record.inputs), -1):
                if isinstance(block, Operand) and is_external(block):
                    uses[places[record.cube, record.pe]].append(BlockUse(number, index, block))
        mmus = [pe.mmu for pe in self._pes]
        return Relocation(self.key.addresses, mmus, uses, self._chip.context.locate)


def _start_ps(records: Sequence[OpRecord]) -> int:
    """The start of the kernels: the end of the IO_CPU's record of the launch."""
    return next(each.end_ps for each in records if each.engine == "io_cpu")
