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

from runtime.core.compiled.choice import IS_COMPILED
from runtime.core.requests import KernelLaunchMsg
from runtime.model.schema.topology_schema import Implementations, Topology
from runtime.wire.environment import fold_requested
from sip_node.chip.context import ChipContext
from sip_node.chip.fabric.packet import FabricTransfer
from sip_node.chip.host.commands import CommandDone
from sip_node.chip.launch_keys import LaunchKey, NotRepeated
from sip_node.chip.launches.chip_state import ChipState, IdleChip
from sip_node.chip.launches.launch_template import LaunchRepetition, LaunchTemplate
from sip_node.chip.launches.learned_launch import LearnedLaunch
from sip_node.chip.launches.passengers import Passenger, passengers
from sip_node.kernel.calendar import ARRIVALS_FIRST

MOST_RECORDS = 1 << 18
"""The records of all launches that are kept, some 150 MB; those used last are."""
MOST_ATTEMPTS = 8
"""Launches with one key that are recorded, and one more for each that is repeated."""
MOST_KEYS = 1 << 14
"""The keys of launches that are known; those used last are."""


class _RecordedLaunch:
    """A launch that was recorded: its template once it has come again, None if it cannot be
    repeated.
    """

    def __init__(self, learned: LearnedLaunch) -> None:
        self.size = learned.size
        self._learned: LearnedLaunch | None = learned
        self._template: LaunchTemplate | None = None

    @property
    def template(self) -> LaunchTemplate | None:
        """The template that it becomes."""
        learned, self._learned = self._learned, None
        if learned is not None:
            try:
                self._template = learned.template()
            except NotRepeated:
                self._template = None
        return self._template


class LaunchTemplates:
    """The launches of one chip."""

    def __init__(self) -> None:
        self._state: ChipState
        self._known: OrderedDict[Hashable, list[_RecordedLaunch]] = OrderedDict()
        self._size = 0
        # By the commands of launches: how many more of them are recorded.
        self._attempts: OrderedDict[Hashable, int] = OrderedDict()
        self._learning: LearnedLaunch | None = None
        self.safe_ps: Callable[[], int] = lambda: 0
        """No message of another LP that has not arrived comes before this time."""
        self.hold_until: Callable[[int], None] = lambda _: None
        """Ends the run of the engine until that time is safe, or a message has arrived."""

    def connect(self, context: ChipContext, chip: IdleChip) -> None:
        """The launches are those of a chip, whose components exist now."""
        self._state = ChipState(context, chip)

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
        self._stop_learning()
        chip = self._state
        if launch.thread != "kernels" or (on_way := passengers(chip)) is None:
            return False
        key = chip.context.launch_keys.key(chip.context.sip, number, launch)
        if key is None:
            return False
        now_ps = chip.engine.now_ps
        state = key.commands, tuple([each.stage(now_ps) for each in on_way])
        for known in self._known.get(state, ()):
            template = known.template
            repetition = None if template is None else template.fits(key, now_ps)
            if template is None or repetition is None:
                continue
            end_ps = now_ps + template.changes.duration_ps
            if end_ps < self.safe_ps():
                self._known.move_to_end(state)
                self._allow(key, +1)
                self._repeat(template, repetition, on_way, number, launch, finish)
            else:
                # Nothing has happened yet: the launch begins again before all that is at this time.
                chip.engine.at(now_ps, again, priority=ARRIVALS_FIRST)
                chip.engine.ahead -= 1
                self.hold_until(end_ps)
            return True
        # The first time it may be one that never comes again.
        if key.commands not in self._attempts:
            self._allow(key, MOST_ATTEMPTS)
        elif self._attempts[key.commands]:
            self._allow(key, -1)
            self._learning = LearnedLaunch(chip, tag, launch, key, on_way, state)
        return False

    def answered(self, transfer: FabricTransfer) -> None:
        """An answer has arrived at the host, which has not recorded it yet."""
        if self._learning is not None:
            self._learning.answered(transfer)

    def end(self, tag: int, done: CommandDone) -> None:
        """A request of the host is complete: a launch that is recorded, or something else."""
        learned = self._learning
        if learned is None:
            return
        keys = self._state.context.launch_keys
        if learned.tag == tag and keys.is_listed(learned.key, learned.launch) and learned.end(done):
            self._keep(learned)
        self._stop_learning()

    def _allow(self, key: LaunchKey, more: int) -> None:
        """Allow more launches with a key to be recorded, or fewer."""
        self._attempts[key.commands] = self._attempts.pop(key.commands, 0) + more
        if len(self._attempts) > MOST_KEYS:
            self._attempts.popitem(last=False)

    def _stop_learning(self) -> None:
        learned, self._learning = self._learning, None
        if learned is not None:
            learned.stop()

    def _keep(self, learned: LearnedLaunch) -> None:
        known = _RecordedLaunch(learned)
        self._known.setdefault(learned.state, []).append(known)
        self._known.move_to_end(learned.state)
        self._size += known.size
        while self._size > MOST_RECORDS:
            _, dropped = self._known.popitem(last=False)
            self._size -= sum(each.size for each in dropped)

    def _repeat(
        self,
        template: LaunchTemplate,
        repetition: LaunchRepetition,
        on_way: Sequence[Passenger],
        number: int,
        launch: KernelLaunchMsg,
        finish: Callable[[CommandDone], None],
    ) -> None:
        """Do at once what a launch does that begins now."""
        chip, changes = self._state, template.changes
        engine, begin_ps, bounds = chip.engine, chip.engine.now_ps, chip.context.send_bounds
        end_ps = begin_ps + changes.duration_ps
        bounds.repeated(number, launch, begin_ps + changes.start_after_ps, end_ps)
        template.repeat(repetition, begin_ps)
        chip.fabric.sent += changes.sent
        chip.fabric.delivered += changes.delivered
        # The answers reach the host, or go on, as they did: between the same records.
        engine.withdraw()
        first_record, entered = chip.log.count, 0
        for after_ps, records, passenger in changes.arrivals:
            engine.at(begin_ps + after_ps, template.enter, entered, records, begin_ps)
            transfer = on_way[passenger].packet.transfer
            engine.at(begin_ps + after_ps, chip.chip.host.answered, transfer)
            entered = records

        def end() -> None:
            template.enter(entered, template.size, begin_ps)
            self._repeat_rows(template, number, launch, begin_ps, first_record)
            done = changes.done
            finish(CommandDone(begin_ps + done.start_ps, begin_ps + done.end_ps))

        engine.at(end_ps, end)
        for each in changes.stages:
            packet = on_way[each.passenger].packet
            chip.fabric.rejoin(
                packet,
                chip.context.graph.io_cpu,
                each.step,
                begin_ps + each.after_ps,
                begin_ps + each.tail_after_ps,
            )
        engine.ahead += changes.events - 2 * len(changes.arrivals) - 1
        chip.context.launch_keys.repeat(len(launch.pes))

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
        log = self._state.log
        moved_ps, recorder = begin_ps - template.changes.begin_ps, log.recorder
        log.steps.repeat(
            rows.steps,
            log.steps.begun - rows.step,
            recorder.programs - rows.program,
            moved_ps,
            first_record - rows.record,
            rows.begun,
        )
        programs = recorder.programs - rows.program
        recorder.calls.repeat(rows.calls, programs, moved_ps, template.extents())
        recorder.repeat_programs(
            rows.programs, rows.kernels, moved_ps, rows.program, number, launch.line
        )


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
    return LaunchTemplates()
