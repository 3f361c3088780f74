"""Chips that are held at a point of their launches until all chips of an LP have got there.

The launches of a collective may begin, or end, on one SIP earlier than on another one. A message
from SIP to SIP takes some time at least, the lookahead. Within less than that, what happens on a
chip depends on no other chip, so any of them may be ahead. A chip that has got there is held: its
events are taken out of the calendar, and those of the others go on. When all are there, the state
of each is known at one point of its launches, and the clock goes back to the first of them.

    sip 0   ----------|
    sip 1   --------------|
    sip 2   -----|         . . . . . |
                 first               first + lookahead: time is over
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from sip_node.chip.exchanges.chips_of_lp import ChipsOfLp
from sip_node.chip.exchanges.credit import NotAlone
from sip_node.chip.host.host import Host
from sip_node.chip.host.io_cpu import IoCpu
from sip_node.chip.host.launch_events import GatheredAnswer, LaunchBegin, LaunchEnd
from sip_node.chip.host.m_cpu import MCpu
from sip_node.chip.launches.repeated_launch import RepeatedLaunch
from sip_node.chip.pe.ipcq import PeIpcq
from sip_node.kernel.calendar import ARRIVALS_FIRST

_OF_A_CHIP = (LaunchBegin, LaunchEnd, GatheredAnswer, RepeatedLaunch, Host, IoCpu)
"""The objects of which a chip has calls in the calendar."""

Point = LaunchBegin | LaunchEnd
"""The event at which a chip is held, which comes again when the chip goes on."""


class HeldChip(NamedTuple):
    """A chip that is held at `time_ps`, at the event `point`, and all that is to come there."""

    time_ps: int
    point: Point
    events: list[Any]


class HeldChips:
    """The chips of an LP that are held at one point of their launches.

    `time_over` is called if some of them have not got there in time.
    """

    def __init__(self, chips: ChipsOfLp, time_over: Callable[["HeldChips"], None]) -> None:
        self._chips, self._time_over = chips, time_over
        self._held: dict[int, HeldChip] = {}
        self.first_ps = chips.engine.now_ps
        """The time of the first of them."""
        self.is_failed = False
        """Whether no more of them are held: something else is at work."""
        self.inserted = 0
        """The events that it has inserted: the end of the time."""

    @property
    def is_complete(self) -> bool:
        """Whether all chips are held."""
        return len(self._held) == len(self._chips.chips)

    @property
    def chips(self) -> list[HeldChip]:
        """All chips, once all are held."""
        return [self._held[place] for place in range(len(self._held))]

    def hold(self, place: int, point: Point) -> bool:
        """The chip at `place` has got there now; returns whether it is held: all that is to come
        belongs to one chip or another.
        """
        engine = self._chips.engine
        pending = None if self.is_failed else self._pending()
        if pending is None:
            self.is_failed = True
            return False
        self._held[place] = HeldChip(engine.now_ps, point, [])
        others = list[Any]()
        for event, of in pending:
            held = self._held.get(of)
            (others if held is None else held.events).append(event)
        engine.withdraw()
        if self.is_complete:
            # What is left is the end of the time.
            assert len(others) == self.inserted, "all events belong to chips"
            for each in self._held.values():
                each.events.sort()
            return True
        engine.put_back(others)
        if not self.inserted:
            over_ps = self.first_ps + self._chips.lookahead_ps - 1
            engine.at(over_ps, self._end, priority=ARRIVALS_FIRST)
            self.inserted = 1
        return True

    def release(self) -> list[tuple[int, int]]:
        """Let the chips go on, each from where it is held; returns the SIPs and tags of their
        launches.
        """
        engine = self._chips.engine
        engine.now_ps = self.first_ps
        for each in self._held.values():
            engine.at(each.time_ps, each.point, priority=ARRIVALS_FIRST)
            # The event was counted when the chip got there.
            engine.ahead -= 1
            engine.put_back(each.events)
        return [(each.point.sip, each.point.tag) for each in self._held.values()]

    def _pending(self) -> list[tuple[Any, int]] | None:
        """All that is to come, in its order, with the places of the chips; None where one is not
        certain.
        """
        events = self._chips.engine.events_to_come()
        try:
            return None if events is None else [(each, self._place_of(each)) for each in events]
        except NotAlone:
            return None

    def _place_of(self, event: Any) -> int:
        """The place of the chip of an event, -1 for the end of the time; raises `NotAlone` where it
        is not certain.
        """
        chips, actor, subject = self._chips, event.actor, event.subject
        if actor is None:
            called, _ = subject
            # The call of a method is an event of its object.
            owner = getattr(called, "__self__", called)
            if owner is self:
                return -1
            if not isinstance(owner, _OF_A_CHIP):
                raise NotAlone
            return chips.place_of_sip(owner.sip)
        if isinstance(actor, PeIpcq | MCpu):
            return chips.place_of_sip(subject.transfer.sip)
        place = chips.place_of_fabric(actor)
        place = chips.place_of_inbox(actor) if place is None else place
        if place is None:
            raise NotAlone
        return place

    def _end(self) -> None:
        """The time is over: an event that no chip has."""
        self._chips.engine.ahead -= 1
        self._time_over(self)
