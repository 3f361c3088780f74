"""Launches on all chips of an LP that are simulated, and recorded so that they may be repeated."""

from collections.abc import Hashable, Sequence

from runtime.core.trace import OpRecord
from sip_node.chip.exchanges.chips_of_lp import ChipsOfLp
from sip_node.chip.exchanges.credit import NotAlone
from sip_node.chip.exchanges.events_on_way import (
    AnswerOnWay,
    CreditAtQueues,
    CreditOnRoute,
    CreditsInLink,
    EndOnChip,
    EventOnWay,
    answers_of,
    events_on_way,
)
from sip_node.chip.exchanges.exchange_counts import ExchangeCounts
from sip_node.chip.exchanges.exchange_member import ExchangeMember
from sip_node.chip.exchanges.exchange_template import (
    ExchangeChanges,
    ExchangeTemplate,
    HostAnswer,
)
from sip_node.chip.exchanges.ring_slots import RingSlots, SentSlots
from sip_node.chip.exchanges.shared_values import Memories, SharedValues, ValuesOfChip
from sip_node.chip.fabric.packet import FabricTransfer
from sip_node.chip.host.commands import CommandDone
from sip_node.chip.launches.launch_recording import MOST_OF_A_LAUNCH, LaunchRecording
from sip_node.chip.launches.launch_template import LaunchTemplate
from sip_node.chip.pe.queue_table import QueueState


class LearnedExchange:
    """Launches of `members` that begin now, on the chips in this order, with events on their way;
    `state` is what others have to have in common with them.
    """

    def __init__(
        self,
        chips: ChipsOfLp,
        members: Sequence[ExchangeMember],
        on_way: Sequence[EventOnWay],
        order: Sequence[int],
        state: Hashable,
    ) -> None:
        self._chips, self._members, self.state, self._order = chips, members, state, order
        self._answers = answers_of(on_way)
        queues = [*[queue for each in members for queue in each.queues], *_credited(on_way)]
        # A queue may wait for several credits.
        self._queues = list({id(each): each for each in queues}.values())
        self._rings = [SentSlots(each) for each in self._queues]
        self._counts = ExchangeCounts(chips, self._queues)
        self._begin_ps, self._scheduled = chips.engine.now_ps, chips.engine.scheduled
        self._to_come = len(chips.engine.events_to_come())
        self._others, self._kept = self._of_others(), self._in_place()
        self._functions = self._functions_run()
        self.records: list[OpRecord] = []
        """The records of all chips, in the order in which they are entered."""
        self._recordings = [
            LaunchRecording(each.chip, each.begin.launch, each.key) for each in members
        ]
        for each in members:
            each.chip.log.begin_recording(self.records)
        self._arrivals: list[HostAnswer] = []
        self._left: list[EventOnWay] = []
        self._ends: list[tuple[int, CommandDone]] = []
        self._is_pinned = False
        self._events, self._end_ps = 0, -1

    @property
    def size(self) -> int:
        """The number of its records."""
        return len(self.records)

    @property
    def commands(self) -> Hashable:
        """Equal for launches of equal commands."""
        return tuple([each.key.commands for each in self._members])

    @property
    def is_too_long(self) -> bool:
        """Whether a launch has more records than are kept."""
        return any(len(each.records) > MOST_OF_A_LAUNCH for each in self._recordings)

    def is_beginning(self, sip: int, tag: int) -> bool:
        """Whether a launch that begins now on a SIP is one of these."""
        return (
            self._end_ps < 0
            and self._chips.engine.now_ps == self._begin_ps
            and self._members[self._chips.place_of_sip(sip)].begin.tag == tag
        )

    def answered(self, sip: int, transfer: FabricTransfer) -> None:
        """An answer has arrived at the host of a SIP, which has not recorded it yet."""
        place = self._chips.place_of_sip(sip)
        for number, packet in enumerate(self._answers):
            if packet.transfer is transfer:
                after_ps = self._chips.engine.now_ps - self._begin_ps
                entered = self._recordings[place].entered
                self._arrivals.append(HostAnswer(place, after_ps, entered, number))

    def stop(self) -> None:
        """Record nothing more."""
        if self._end_ps < 0:
            self._end_ps = self._chips.engine.now_ps
            for recording, member in zip(self._recordings, self._members, strict=True):
                recording.stop()
                member.chip.log.end_recording(self.records)

    def end(self, sip: int, tag: int, done: CommandDone) -> bool:
        """The launch of a SIP ends now; returns whether all may be repeated so far: they end
        together, and nothing else was at work.
        """
        place = self._chips.place_of_sip(sip)
        if self._members[place].begin.tag != tag:
            return False
        if not self._ends:
            is_alone = self._is_alone(place) and all(each.leave() for each in self._recordings)
            self._counts.end()
            self.stop()
            if not is_alone:
                return False
        self._ends.append((place, done))
        return self._chips.engine.now_ps == self._end_ps

    @property
    def is_complete(self) -> bool:
        """Whether the launches of all chips have ended."""
        return len(self._ends) == len(self._members)

    def template(self) -> ExchangeTemplate:
        """The template that they are; raises `NotRepeated`."""
        chips, memories = self._chips, Memories(self._chips)
        shared = SharedValues(chips, self.records) if chips.chips[0].context.data else None
        dones, templates, slots = dict(self._ends), list[LaunchTemplate](), list[RingSlots]()
        for place, each in enumerate(self._recordings):
            records = each.own_records
            slots.append(RingSlots(self._rings, records))
            values = None if shared is None else ValuesOfChip(shared, records)
            templates.append(
                each.template(dones[place], memories.is_external, values, (slots[-1],))
            )
        changes = ExchangeChanges(
            counts=self._counts,
            events=self._events,
            arrivals=self._arrivals,
            duration_ps=self._end_ps - self._begin_ps,
            order=[self._order.index(place) for place, _ in self._ends],
            left=self._left,
        )
        is_pinned = self._is_pinned or any(each.spans for each in slots)
        return ExchangeTemplate(chips, templates, shared, changes, self._rings, is_pinned=is_pinned)

    def _is_alone(self, first: int) -> bool:
        """Whether nothing but the launches was at work when the first of them ends."""
        if self._of_others() != self._others or self._functions_run() != [
            count + len(each.begin.launch.pes)
            for count, each in zip(self._functions, self._members, strict=True)
        ]:
            return False
        try:
            left = events_on_way(self._chips)
        except NotAlone:
            return False
        ends = [each for each in left if isinstance(each, EndOnChip)]
        others = {
            (place, each.begin.tag) for place, each in enumerate(self._members) if place != first
        }
        if (
            any(each.after_ps for each in ends)
            or {(each.place, each.tag) for each in ends} != others
        ):
            return False
        numbers = {id(packet): number for number, packet in enumerate(self._answers)}
        for each in left:
            if isinstance(each, EndOnChip):
                continue
            # It would come between two ends.
            if not each.after_ps:
                return False
            if isinstance(each, AnswerOnWay):
                each.number = numbers.get(id(each.packet), -1)
                if each.number < 0:
                    return False
            self._left.append(each)
        self._is_pinned = self._in_place() != self._kept
        engine = self._chips.engine
        self._events = engine.scheduled - self._scheduled + self._to_come - len(left)
        return True

    def _of_others(self) -> list[tuple[int, int]]:
        """Counts that do not change while nothing but the launches is at work."""
        return [
            (
                each.chip.host.streams.submitted,
                0 if each.context.forward is None else each.context.forward.taken,
            )
            for each in self._chips.chips
        ]

    def _functions_run(self) -> list[int]:
        return [each.context.launch_keys.functions(each.context.sip) for each in self._chips.chips]

    def _in_place(self) -> int:
        """The messages that receives in place have matched."""
        return sum(table.kept for each in self._members for table in each.tables)


def _credited(on_way: Sequence[EventOnWay]) -> list[QueueState]:
    """The queues that credits on their way are for."""
    queues = list[QueueState]()
    for each in on_way:
        match each:
            case CreditOnRoute() | CreditAtQueues():
                queues.append(each.credit.queue)
            case CreditsInLink():
                queues += [of.credit.queue for of in each.arriving]
            case _:
                pass
    return queues
