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

from collections.abc import Callable, Sequence

from runtime.core.compiled.choice import IS_COMPILED
from runtime.model.jitter import links_have_jitter
from runtime.model.schema.topology_schema import Implementations, Topology
from runtime.wire.environment import fold_requested
from sip_node.chip.context import ChipContext
from sip_node.chip.fabric.packet import FabricTransfer
from sip_node.chip.host.commands import CommandDone
from sip_node.chip.launch_keys import BeginningLaunch, Exchanging, NoExchanges
from sip_node.chip.launches.chip_state import ChipState, IdleChip
from sip_node.chip.launches.known_templates import KnownTemplates, Recorded
from sip_node.chip.launches.launch_template import LaunchRepetition, LaunchTemplate
from sip_node.chip.launches.learned_launch import LearnedLaunch
from sip_node.chip.launches.passengers import Passenger, passengers
from sip_node.chip.launches.repeated_launch import RepeatedLaunch
from sip_node.kernel.calendar import ARRIVALS_FIRST

MOST_BYTES = 1 << 31
"""The memory for the launches that a process keeps; those used last are. A cache that is smaller
than a training step repeats none of its launches.
"""
MOST_ATTEMPTS = 40
"""Launches with one key that are recorded, and one more for each that is repeated: equal layers of
a model may have tensors on other PEs.
"""
SHARE_OF_A_LAUNCH = 4
"""One launch has at most this part of the memory."""


class LaunchTemplates:
    """The launches of one chip."""

    def __init__(self) -> None:
        self.state: ChipState
        self.share(1)
        self._learning: LearnedLaunch | None = None
        self.exchanges: Exchanging = NoExchanges()
        """Repeats collectives, where all of their SIPs are in this process."""
        self.safe_ps: Callable[[], int] = lambda: 0
        """No message of another LP that has not arrived comes before this time."""
        self.hold_until: Callable[[int], None] = lambda _: None
        """Ends the run of the engine until that time is safe, or a message has arrived."""

    def share(self, chips: int) -> None:
        """The process has a number of chips, which share its memory."""
        self._most_bytes = MOST_BYTES // chips
        self._known = KnownTemplates[Recorded[LaunchTemplate]](self._most_bytes, MOST_ATTEMPTS)

    def connect(self, context: ChipContext, chip: IdleChip) -> None:
        """The launches are those of a chip, whose components exist now."""
        self.state = ChipState(context, chip)

    def begin(self, begin: BeginningLaunch) -> bool:
        """A launch begins: whether it is not to be simulated.

        A repetition finishes the launch at its end; a simulation ends with `end`, with its tag.
        Where a message might come before that end, it begins again once it is known whether one
        does.
        """
        self._stop_learning()
        chip, launch = self.state, begin.launch
        if self.exchanges.begin(chip.context.sip, begin):
            return True
        if launch.thread != "kernels" or (on_way := passengers(chip)) is None:
            return False
        key = chip.context.launch_keys.key(chip.context.sip, begin.number, launch)
        if key is None:
            return False
        now_ps = chip.engine.now_ps
        state = key.commands, tuple([each.stage(now_ps) for each in on_way])
        for known in self._known.of(state):
            template = known.template
            repetition = None if template is None else template.fits(key, now_ps)
            if template is None or repetition is None:
                continue
            end_ps = now_ps + template.changes.duration_ps
            if end_ps < self.safe_ps():
                self._known.repeated(state, key.commands)
                self._repeat(template, repetition, on_way, begin)
            else:
                # Nothing has happened yet: the launch begins again before all that is at this time.
                chip.engine.at(now_ps, begin, priority=ARRIVALS_FIRST)
                chip.engine.ahead -= 1
                self.hold_until(end_ps)
            return True
        # The first time it may be one that never comes again, and its functions run: those leave
        # numbers without formulas.
        has_come = self._known.has_come(key.commands)
        is_worth = has_come or not (chip.context.data or any(key.numbers))
        if is_worth and self._known.attempts(key.commands):
            most_bytes = self._most_bytes // SHARE_OF_A_LAUNCH
            self._learning = LearnedLaunch(chip, begin, key, on_way, state, most_bytes)
        return False

    def answered(self, transfer: FabricTransfer) -> None:
        """An answer has arrived at the host, which has not recorded it yet."""
        self.exchanges.answered(self.state.context.sip, transfer)
        if self._learning is not None:
            self._learning.answered(transfer)

    def end(self, tag: int, done: CommandDone) -> bool:
        """A request of the host is complete: a launch that is recorded, or something else."""
        if self.exchanges.end(self.state.context.sip, tag, done):
            return True
        learned = self._learning
        if learned is None:
            return False
        keys = self.state.context.launch_keys
        if learned.tag == tag and keys.is_listed(learned.key, learned.launch) and learned.end(done):
            self._known.keep(learned.state, Recorded(learned))
        self._stop_learning()
        return False

    def leave_out(self) -> None:
        """A kernel of the launch that is recorded sends or receives: no launch with its key is
        recorded any more.
        """
        if self._learning is not None:
            self._known.give_up(self._learning.key.commands)
            self._stop_learning()

    def _stop_learning(self) -> None:
        learned, self._learning = self._learning, None
        if learned is not None:
            learned.stop()

    def _repeat(
        self,
        template: LaunchTemplate,
        repetition: LaunchRepetition,
        on_way: Sequence[Passenger],
        begin: BeginningLaunch,
    ) -> None:
        """Do at once what a launch does that begins now."""
        chip, changes = self.state, template.changes
        engine, begin_ps = chip.engine, chip.engine.now_ps
        repeated = RepeatedLaunch(chip, template, begin, begin_ps)
        template.change(repetition)
        repeated.leave_behind(repetition)
        # The answers reach the host, or go on, as they did: between the same records.
        engine.withdraw()
        for after_ps, records, passenger in changes.arrivals:
            repeated.answer(after_ps, records, on_way[passenger].packet.transfer)
        engine.at(begin_ps + changes.duration_ps, repeated.end)
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


def launch_templates(topology: Topology) -> LaunchTemplates | None:
    """The templates of the launches of a chip; None where launches are simulated: by the core in
    Python, with parts of a class of the user, with credits, with banks, with links that delay each
    packet by its own time, and where the user switches it off.
    """
    is_modelled = (
        topology.impl == Implementations()
        and topology.noc.flow_control == "unlimited"
        and topology.hbm.model == "channels"
        and not links_have_jitter(topology)
    )
    # In this order, so that a wrong value is an error with both cores.
    if not fold_requested() or not IS_COMPILED or not is_modelled:
        return None
    return LaunchTemplates()
