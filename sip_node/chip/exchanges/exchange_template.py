"""Launches on all chips of an LP that were simulated, as the template of those that repeat them."""

from collections.abc import Sequence
from typing import NamedTuple

from sip_node.chip.exchanges.chips_of_lp import ChipsOfLp
from sip_node.chip.exchanges.events_on_way import EventOnWay, Moment, answers_of
from sip_node.chip.exchanges.exchange_counts import ExchangeCounts
from sip_node.chip.exchanges.exchange_member import ExchangeMember
from sip_node.chip.exchanges.ring_slots import SentSlots
from sip_node.chip.exchanges.shared_values import SharedValues
from sip_node.chip.launches.launch_template import LaunchRepetition, LaunchTemplate
from sip_node.chip.launches.repeated_launch import RepeatedLaunch


class HostAnswer(NamedTuple):
    """The `number`th answer on its way arrives at the host of the chip at `place`, `after_ps`
    behind the begin, when `records` of the launch there are in the log.
    """

    place: int
    after_ps: int
    records: int
    number: int


class ExchangeChanges(NamedTuple):
    """The changes by launches beside those of each chip: `counts` of queues and links, `events` of
    the engine, and answers that have arrived. They end at one time, `duration_ps` behind their
    begin, in an `order` of their turns at the begin; `left` is on its way then.
    """

    counts: ExchangeCounts
    events: int
    arrivals: Sequence[HostAnswer]
    duration_ps: int
    order: Sequence[int]
    left: Sequence[EventOnWay]


class ExchangeTemplate:
    """The template of launches: `parts` are those of each chip, `values` those of all.

    `rings` are those into which their queues send. Where it `is_pinned`, what it does depends on
    where the rings stand.
    """

    def __init__(
        self,
        chips: ChipsOfLp,
        parts: Sequence[LaunchTemplate],
        values: SharedValues | None,
        changes: ExchangeChanges,
        rings: Sequence[SentSlots],
        *,
        is_pinned: bool,
    ) -> None:
        self._chips, self._parts, self._values = chips, parts, values
        self._rings, self._is_pinned, self._changes = rings, is_pinned, changes

    def fits(self, members: Sequence[ExchangeMember]) -> list[LaunchRepetition] | None:
        """The differences of launches that begin now; None where they would not be the same."""
        if self._is_pinned and any(each.turned for each in self._rings):
            return None
        now_ps = self._chips.engine.now_ps
        repetitions = list[LaunchRepetition]()
        for part, member in zip(self._parts, members, strict=True):
            repetition = part.fits(member.key, now_ps)
            if repetition is None:
                return None
            repetitions.append(repetition)
        return repetitions

    def repeat(
        self,
        members: Sequence[ExchangeMember],
        repetitions: Sequence[LaunchRepetition],
        on_way: Sequence[EventOnWay],
        order: Sequence[int],
    ) -> None:
        """Do at once what launches do that begin now, on the chips in this order."""
        chips, engine, changes = self._chips, self._chips.engine, self._changes
        begin_ps, answers = engine.now_ps, answers_of(on_way)
        engine.withdraw()
        for each in chips.chips:
            each.chip.boundary.inbox.withdraw()
        begin = Moment(chips, begin_ps, answers)
        for event in on_way:
            event.remove(begin)
        later, repeated = changes.counts.later_flows(), list[RepeatedLaunch]()
        for part, member, repetition in zip(self._parts, members, repetitions, strict=True):
            part.change(repetition)
            part.number_flows(later)
            repeated.append(RepeatedLaunch(member.chip, part, member.begin))
        if self._values is not None:
            self._values.compute()
        for each, member, repetition in zip(repeated, members, repetitions, strict=True):
            each.leave_behind(repetition)
            member.call()
        changes.counts.repeat()
        for answer in changes.arrivals:
            transfer = answers[answer.number].transfer
            repeated[answer.place].answer(answer.after_ps, answer.records, transfer)
        end_ps = begin_ps + changes.duration_ps
        for turn in changes.order:
            engine.at(end_ps, repeated[order[turn]].end)
        end = Moment(chips, end_ps, answers)
        for event in changes.left:
            event.insert(end)
        engine.ahead += changes.events - 2 * len(changes.arrivals) - 1
