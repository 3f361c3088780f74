"""A launch on one chip that is not simulated: what it leaves behind at once, and later."""

from sip_node.chip.fabric.packet import FabricTransfer
from sip_node.chip.host.commands import CommandDone
from sip_node.chip.launch_keys import BeginningLaunch
from sip_node.chip.launches.chip_state import ChipState
from sip_node.chip.launches.launch_template import LaunchRepetition, LaunchTemplate


class RepeatedLaunch:
    """A launch that begins at `begin_ps` and repeats a template."""

    def __init__(
        self, chip: ChipState, template: LaunchTemplate, begin: BeginningLaunch, begin_ps: int
    ) -> None:
        self._chip, self._template, self._begin = chip, template, begin
        self._begin_ps = begin_ps
        self._first_record, self._entered = chip.log.count, 0
        self._steps = 0 if chip.log.steps is None else chip.log.steps.begun

    @property
    def sip(self) -> int:
        """The SIP of its chip."""
        return self._chip.context.sip

    def leave_behind(self, repetition: LaunchRepetition) -> None:
        """Do all that is not seen before the end of the launch."""
        chip, changes, begin_ps = self._chip, self._template.changes, self._begin_ps
        launch = self._begin.launch
        chip.context.send_bounds.repeated(
            self._begin.number,
            launch,
            begin_ps + changes.start_after_ps,
            begin_ps + changes.duration_ps,
        )
        self._template.repeat(repetition, begin_ps)
        chip.fabric.sent += changes.sent
        chip.fabric.delivered += changes.delivered
        chip.context.launch_keys.repeat(len(launch.pes))

    def answer(self, after_ps: int, records: int, transfer: FabricTransfer) -> None:
        """An answer to an earlier command arrives at the host `after_ps` behind the begin, when
        `records` of the launch are in the log.
        """
        engine, time_ps = self._chip.engine, self._begin_ps + after_ps
        engine.at(time_ps, self._enter, records)
        engine.at(time_ps, self._chip.chip.host.answered, transfer)

    @property
    def end_ps(self) -> int:
        """The time of its end."""
        return self._begin_ps + self._template.changes.duration_ps

    def end(self) -> None:
        """The launch ends now."""
        done = self._template.changes.done
        self._enter(self._template.size)
        self._repeat_rows()
        self._begin.finish(
            CommandDone(self._begin_ps + done.start_ps, self._begin_ps + done.end_ps)
        )

    def _enter(self, records: int) -> None:
        """Enter the records that are not in the log yet, up to that number."""
        log, template = self._chip.log, self._template
        template.enter(log, self._entered, records, self._begin_ps, self._steps)
        self._entered = records

    def _repeat_rows(self) -> None:
        """Add the rows of a run with records."""
        rows = self._template.rows
        if rows is None:
            return
        log = self._chip.log
        moved_ps, recorder = self._begin_ps - self._template.changes.begin_ps, log.recorder
        log.steps.repeat(
            rows.steps,
            log.steps.begun - rows.step,
            recorder.programs - rows.program,
            moved_ps,
            self._first_record - rows.record,
            rows.begun,
        )
        recorder.calls.repeat(
            rows.calls,
            recorder.programs - rows.program,
            moved_ps,
            self._template.block_distances(),
        )
        recorder.repeat_programs(
            rows.programs,
            rows.kernels,
            moved_ps,
            rows.program,
            self._begin.number,
            self._begin.launch.line,
        )
