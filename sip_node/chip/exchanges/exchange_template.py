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
    the engine between begins and ends, and answers that have arrived; `left` is on its way at the
    ends.
    """

    counts: ExchangeCounts
    events: int
    arrivals: Sequence[HostAnswer]
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

    def fits(
        self, members: Sequence[ExchangeMember], begins_ps: Sequence[int]
    ) -> list[LaunchRepetition] | None:
        """The differences of launches that begin at these times; None where they would not be the
        same.
        """
        if self._is_pinned and any(each.turned for each in self._rings):
            return None
        repetitions = list[LaunchRepetition]()
        for part, member, begin_ps in zip(self._parts, members, begins_ps, strict=True):
            repetition = part.fits(member.key, begin_ps)
            if repetition is None:
                return None
            repetitions.append(repetition)
        return repetitions

    def repeat(
        self,
        members: Sequence[ExchangeMember],
        repetitions: Sequence[LaunchRepetition],
        on_way: Sequence[EventOnWay],
        begins_ps: Sequence[int],
    ) -> None:
        """Do at once what launches do that begin at these times, in place of what is on its way."""
        chips, engine, changes = self._chips, self._chips.engine, self._changes
        answers = answers_of(on_way)
        engine.now_ps = min(begins_ps)
        for each in chips.chips:
            each.chip.boundary.inbox.withdraw()
        begin = Moment(chips, begins_ps, answers)
        for event in on_way:
            event.remove(begin)
        later, repeated = changes.counts.later_flows(), list[RepeatedLaunch]()
        for part, member, repetition, begin_ps in zip(
            self._parts, members, repetitions, begins_ps, strict=True
        ):
            part.change(repetition)
            part.number_flows(later)
            repeated.append(RepeatedLaunch(member.chip, part, member.begin, begin_ps))
        if self._values is not None:
            self._values.compute()
        for each, member, repetition in zip(repeated, members, repetitions, strict=True):
            each.leave_behind(repetition)
            member.call()
        changes.counts.repeat()
        for answer in changes.arrivals:
            transfer = answers[answer.number].transfer
            repeated[answer.place].answer(answer.after_ps, answer.records, transfer)
        for each in repeated:
            engine.at(each.end_ps, each.end)
        end = Moment(chips, [each.end_ps for each in repeated], answers)
        for event in changes.left:
            event.insert(end)
        engine.ahead += changes.events - 2 * len(changes.arrivals) - len(repeated)
