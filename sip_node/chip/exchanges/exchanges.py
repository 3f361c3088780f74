"""Repeats collectives: launches on all SIPs of a run, which exchange messages.

Where one process has all SIPs, it sees all that their launches depend on. When they begin at one
time, everything until they have ended follows from their kernels, from where queues stand, from
what is on its way, and from the state of the chips. If all of that is as it was when launches with
the same commands began, then everything happens as it has happened then. See `LaunchTemplates` for
launches that send no messages.

    sip 0   |== all-reduce, simulated ==|   ...   |== repeated ==|
    sip 1   |== all-reduce, simulated ==|   ...   |== repeated ==|
               ^ credits and answers of earlier ones
"""

from collections.abc import Hashable, Sequence

from sip_node.chip.exchanges.chips_of_lp import ChipsOfLp
from sip_node.chip.exchanges.credit import NotAlone
from sip_node.chip.exchanges.events_on_way import EventOnWay, events_on_way
from sip_node.chip.exchanges.exchange_member import ExchangeMember, member_of
from sip_node.chip.exchanges.exchange_template import ExchangeTemplate
from sip_node.chip.exchanges.held_chips import HeldChips
from sip_node.chip.exchanges.learned_exchange import MOST_BYTES, LearnedExchange
from sip_node.chip.fabric.packet import FabricTransfer
from sip_node.chip.host.commands import CommandDone
from sip_node.chip.host.launch_events import LaunchBegin
from sip_node.chip.launch_keys import BeginningLaunch
from sip_node.chip.launches.known_templates import KnownTemplates, Recorded
from sip_node.chip.launches.launch_templates import LaunchTemplates

MOST_ATTEMPTS = 40
"""Launches with one key that are recorded, and one more for each that is repeated: more than the
slots of a ring, since a launch may depend on the slot with which it begins.
"""


class Exchanges:
    """The collectives of an LP with these chips, which are all of the machine."""

    def __init__(self, chips: Sequence[LaunchTemplates]) -> None:
        self._chips = ChipsOfLp([each.state for each in chips])
        self._known = KnownTemplates[Recorded[ExchangeTemplate]](MOST_BYTES, MOST_ATTEMPTS)
        # At most one of both.
        self._beginning: HeldChips | None = None
        self._ending: HeldChips | None = None
        self._learning: LearnedExchange | None = None
        # The launches that were held, and go on when that event comes again: (SIP, tag).
        self._going_on: set[tuple[int, int]] = set()

    def begin(self, sip: int, begin: BeginningLaunch) -> bool:
        """A launch begins on a SIP: whether it is not to be simulated now."""
        place = self._chips.place_of_sip(sip)
        if (sip, begin.tag) in self._going_on:
            self._going_on.remove((sip, begin.tag))
            if self._learning is not None:
                self._learning.begin(place)
            return False
        self._stop_learning()
        if begin.launch.thread != "collectives" or self._ending is not None:
            return False
        assert isinstance(begin, LaunchBegin), "the IO_CPU begins launches"
        beginning = self._beginning or HeldChips(self._chips, self._begin_late)
        if not beginning.hold(place, begin):
            return False
        self._beginning = None if beginning.is_complete else beginning
        if beginning.is_complete and not self._repeat(beginning):
            self._go_on(beginning)
        return True

    def answered(self, sip: int, transfer: FabricTransfer) -> None:
        """An answer has arrived at the host of a SIP, which has not recorded it yet."""
        if self._learning is not None:
            self._learning.answered(sip, transfer)

    def end(self, sip: int, tag: int, done: CommandDone) -> bool:
        """The request of the host of a SIP with a tag is complete: whether it is held."""
        if (sip, tag) in self._going_on:
            self._going_on.remove((sip, tag))
            return False
        learning = self._learning
        if learning is None:
            return False
        place = self._chips.place_of_sip(sip)
        end = learning.end(place, tag, done)
        ending = self._ending or HeldChips(self._chips, self._end_late)
        if end is None or not ending.hold(place, end):
            self._stop_learning()
            return False
        self._ending = ending
        if ending.is_complete:
            if learning.is_alone(ending):
                self._known.keep(learning.state, Recorded(learning))
            self._end_late(ending)
        return True

    def _repeat(self, held: HeldChips) -> bool:
        """Whether launches that are held at their begins are repeated; others may be recorded."""
        begins_ps = [each.time_ps for each in held.chips]
        try:
            on_way = events_on_way(self._chips, held.chips)
            members = [
                member_of(chip, each.point)
                for chip, each in zip(self._chips.chips, held.chips, strict=True)
                if isinstance(each.point, LaunchBegin)
            ]
        except NotAlone:
            return False
        state = _state(members, on_way, [each - held.first_ps for each in begins_ps])
        commands = tuple([each.key.commands for each in members])
        for known in self._known.of(state):
            template = known.template
            repetitions = None if template is None else template.fits(members, begins_ps)
            if template is not None and repetitions is not None:
                self._known.repeated(state, commands)
                template.repeat(members, repetitions, on_way, begins_ps)
                return True
        self._known.has_come(commands)
        if self._known.attempts(commands):
            self._learning = LearnedExchange(self._chips, members, on_way, state)
        return False

    def _begin_late(self, held: HeldChips) -> None:
        """Not all launches have begun in time."""
        self._beginning = None
        self._go_on(held)

    def _end_late(self, held: HeldChips) -> None:
        """All launches have ended, or not in time."""
        self._ending = None
        self._stop_learning()
        self._go_on(held)

    def _go_on(self, held: HeldChips) -> None:
        self._going_on.update(held.release())

    def _stop_learning(self) -> None:
        learning, self._learning = self._learning, None
        if learning is not None:
            learning.stop()
            if learning.is_too_long:
                self._known.give_up(learning.commands)
        if self._ending is not None:
            self._ending.is_failed = True


def _state(
    members: Sequence[ExchangeMember], on_way: Sequence[EventOnWay], after_ps: Sequence[int]
) -> Hashable:
    """All that launches depend on which begin `after_ps` behind the first of them, but for the
    state of servers and engines.
    """
    calls: list[str] = [each.begin.launch.call for each in members]
    # Nothing depends on the order of events of two chips at one time.
    of_chips = [list[Hashable]() for _ in members]
    for each in on_way:
        of_chips[each.place].append(each.key)
    return (
        tuple(after_ps),
        tuple([each.state for each in members]),
        # Chips that make one call exchange messages.
        tuple([calls.index(each) for each in calls]),
        tuple(map(tuple, of_chips)),
    )
