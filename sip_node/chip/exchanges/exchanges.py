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
from sip_node.chip.exchanges.events_on_way import BeginOnChip, EventOnWay, events_on_way
from sip_node.chip.exchanges.exchange_member import ExchangeMember, member_of
from sip_node.chip.exchanges.exchange_template import ExchangeTemplate
from sip_node.chip.exchanges.learned_exchange import LearnedExchange
from sip_node.chip.fabric.packet import FabricTransfer
from sip_node.chip.host.commands import CommandDone
from sip_node.chip.host.launch_events import LaunchBegin
from sip_node.chip.launch_keys import BeginningLaunch
from sip_node.chip.launches.known_templates import KnownTemplates, Recorded
from sip_node.chip.launches.launch_templates import LaunchTemplates

MOST_RECORDS = 1 << 19
"""The records of all launches that are kept, some 300 MB; those used last are."""
MOST_ATTEMPTS = 40
"""Launches with one key that are recorded, and one more for each that is repeated: more than the
slots of a ring, since a launch may depend on the slot with which it begins.
"""


class Exchanges:
    """The collectives of an LP with these chips, which are all of the machine."""

    def __init__(self, chips: Sequence[LaunchTemplates]) -> None:
        self._chips = ChipsOfLp([each.state for each in chips])
        self._known = KnownTemplates[Recorded[ExchangeTemplate]](MOST_RECORDS, MOST_ATTEMPTS)
        self._learning: LearnedExchange | None = None

    def begin(self, sip: int, begin: BeginningLaunch) -> bool:
        """A launch begins on a SIP: whether it is not to be simulated."""
        learning = self._learning
        if learning is not None and learning.is_beginning(sip, begin.tag):
            return False
        self._stop_learning()
        if begin.launch.thread != "collectives":
            return False
        assert isinstance(begin, LaunchBegin), "the IO_CPU begins launches"
        try:
            first = BeginOnChip(self._chips.place_of_sip(sip), begin)
            on_way = [first, *events_on_way(self._chips)]
            begins = [each for each in on_way if isinstance(each, BeginOnChip)]
            members = self._members(begins)
        except NotAlone:
            return False
        order = [each.place for each in begins]
        state = _state(members, on_way)
        commands = tuple([each.key.commands for each in members])
        for known in self._known.of(state):
            template = known.template
            repetitions = None if template is None else template.fits(members)
            if template is not None and repetitions is not None:
                self._known.repeated(state, commands)
                template.repeat(members, repetitions, on_way, order)
                return True
        self._known.has_come(commands)
        if self._known.attempts(commands):
            self._learning = LearnedExchange(self._chips, members, on_way, order, state)
        return False

    def answered(self, sip: int, transfer: FabricTransfer) -> None:
        """An answer has arrived at the host of a SIP, which has not recorded it yet."""
        if self._learning is not None:
            self._learning.answered(sip, transfer)

    def end(self, sip: int, tag: int, done: CommandDone) -> None:
        """The request of the host of a SIP with a tag is complete."""
        learning = self._learning
        if learning is None:
            return
        if not learning.end(sip, tag, done):
            self._stop_learning()
            if learning.is_too_long:
                self._known.give_up(learning.commands)
        elif learning.is_complete:
            self._known.keep(learning.state, Recorded(learning))
            self._learning = None

    def _members(self, begins: Sequence[BeginOnChip]) -> list[ExchangeMember]:
        """The launches that begin now, in the order of the chips: one on each."""
        chips, by_place = self._chips.chips, {each.place: each.begin for each in begins}
        if not len(begins) == len(by_place) == len(chips):
            raise NotAlone
        return [member_of(each, by_place[place]) for place, each in enumerate(chips)]

    def _stop_learning(self) -> None:
        learning, self._learning = self._learning, None
        if learning is not None:
            learning.stop()


def _state(members: Sequence[ExchangeMember], on_way: Sequence[EventOnWay]) -> Hashable:
    """All that launches which begin now depend on, but for the state of servers and engines."""
    calls: list[str] = [each.begin.launch.call for each in members]
    # Nothing depends on the order of events of two chips at one time.
    of_chips = [list[Hashable]() for _ in members]
    for each in on_way:
        of_chips[each.place].append(each.key)
    return (
        tuple([each.state for each in members]),
        # Chips that make one call exchange messages.
        tuple([calls.index(each) for each in calls]),
        tuple(map(tuple, of_chips)),
    )
