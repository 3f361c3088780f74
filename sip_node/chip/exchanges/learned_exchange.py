"""Launches on all chips of an LP that are simulated, and recorded so that they may be repeated."""

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

from runtime.core.trace import OpRecord
from sip_node.chip.exchanges.chips_of_lp import ChipsOfLp
from sip_node.chip.exchanges.credit import NotAlone
from sip_node.chip.exchanges.events_on_way import (
    AnswerOnWay,
    CreditAtQueues,
    CreditOnRoute,
    CreditsInLink,
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
from sip_node.chip.exchanges.held_chips import HeldChips
from sip_node.chip.exchanges.ring_slots import RingSlots, SentSlots
from sip_node.chip.exchanges.shared_values import Memories, SharedValues, ValuesOfChip
from sip_node.chip.fabric.packet import FabricTransfer
from sip_node.chip.host.commands import CommandDone
from sip_node.chip.host.launch_events import LaunchEnd
from sip_node.chip.launches.launch_recording import LaunchRecording
from sip_node.chip.launches.launch_template import LaunchTemplate
from sip_node.chip.pe.queue_table import QueueState

if TYPE_CHECKING:
    from sip_node.chip.records.kept.kept_records import KeptRecords

MOST_BYTES = 1 << 31
"""The memory for all collectives that a process keeps; those used last are."""


class LearnedExchange:
    """Launches of `members`, which are held at their begins, with events on their way; `state` is
    what others have to have in common with them.
    """

    def __init__(
        self,
        chips: ChipsOfLp,
        members: Sequence[ExchangeMember],
        on_way: Sequence[EventOnWay],
        state: Hashable,
    ) -> None:
        self._chips, self._members, self.state = chips, members, state
        self._answers = answers_of(on_way)
        queues = [*[queue for each in members for queue in each.queues], *_credited(on_way)]
        # A queue may wait for several credits.
        self._queues = list({id(each): each for each in queues}.values())
        self._rings = [SentSlots(each) for each in self._queues]
        self._counts = ExchangeCounts(chips, self._queues)
        # Those to come are executed, but for those that are left.
        self._events = len(on_way) - chips.engine.scheduled
        self._others, self._kept = self._of_others(), self._in_place()
        self._functions = self._functions_run()
        # The records of all chips, in the order in which they are entered, in a run with data.
        self._operations: list[OpRecord] = []
        self._recordings: dict[int, LaunchRecording] = {}
        self._recording: set[int] = set()
        self._dones: dict[int, CommandDone] = {}
        self._arrivals: list[HostAnswer] = []
        self._left: Sequence[EventOnWay] = ()
        self._is_pinned = False

    @property
    def nbytes(self) -> int:
        """Bytes of memory, about."""
        return sum(each.nbytes for each in self._recordings.values())

    @property
    def commands(self) -> Hashable:
        """Equal for launches of equal commands."""
        return tuple([each.key.commands for each in self._members])

    @property
    def is_too_long(self) -> bool:
        """Whether the launches need more memory than all that are kept."""
        return self.nbytes > MOST_BYTES or any(each.is_full for each in self._recordings.values())

    def begin(self, place: int) -> None:
        """The launch of the chip at `place` begins now."""
        member = self._members[place]
        self._recordings[place] = LaunchRecording(
            member.chip, member.begin.launch, member.key, MOST_BYTES
        )
        if member.chip.context.data:
            member.chip.log.begin_recording(self._operations)
        self._recording.add(place)

    def answered(self, sip: int, transfer: FabricTransfer) -> None:
        """An answer has arrived at the host of a SIP, which has not recorded it yet."""
        place = self._chips.place_of_sip(sip)
        for number, packet in enumerate(self._answers):
            if packet.transfer is transfer:
                recording = self._recordings[place]
                after_ps = self._chips.engine.now_ps - recording.begin_ps
                self._arrivals.append(HostAnswer(place, after_ps, recording.entered, number))

    def stop(self) -> None:
        """Record nothing more."""
        for place in sorted(self._recording):
            self._stop_on(place)

    def end(self, place: int, tag: int, done: CommandDone) -> LaunchEnd | None:
        """A request of the host of the chip at `place` is complete: the end of its launch; None for
        something else, and where not all is recorded.
        """
        begin = self._members[place].begin
        if begin.tag != tag or place not in self._recording or self.is_too_long:
            return None
        self._dones[place] = done
        is_recorded = self._recordings[place].leave()
        self._stop_on(place)
        return LaunchEnd(begin, done) if is_recorded else None

    def is_alone(self, held: HeldChips) -> bool:
        """Whether nothing but the launches was at work, which are held at their ends."""
        if self._of_others() != self._others or self._functions_run() != [
            count + len(each.begin.launch.pes)
            for count, each in zip(self._functions, self._members, strict=True)
        ]:
            return False
        try:
            self._left = events_on_way(self._chips, held.chips)
        except NotAlone:
            return False
        numbers = {id(packet): number for number, packet in enumerate(self._answers)}
        for each in self._left:
            if isinstance(each, AnswerOnWay):
                each.number = numbers.get(id(each.packet), -1)
                if each.number < 0:
                    return False
        self._counts.end()
        self._is_pinned = self._in_place() != self._kept
        # The launches have begun once more behind the point at which they were held.
        others = held.inserted + len(self._members)
        self._events += self._chips.engine.scheduled - others - len(self._left)
        return True

    def template(self) -> ExchangeTemplate:
        """The template that they are; raises `NotRepeated`."""
        chips, memories = self._chips, Memories(self._chips)
        is_computed = chips.chips[0].context.data
        shared = SharedValues(chips, self._operations) if is_computed else None
        templates, slots = list[LaunchTemplate](), list[RingSlots]()

        def rings(records: "KeptRecords") -> list[RingSlots]:
            slots.append(RingSlots(self._rings, records))
            return slots[-1:]

        for place in range(len(self._members)):
            each = self._recordings[place]
            values = None if shared is None else ValuesOfChip(shared, each.operations)
            templates.append(each.template(self._dones[place], memories, values, rings))
        changes = ExchangeChanges(
            counts=self._counts,
            events=self._events,
            arrivals=self._arrivals,
            left=self._left,
        )
        is_pinned = self._is_pinned or any(each.spans for each in slots)
        return ExchangeTemplate(chips, templates, shared, changes, self._rings, is_pinned=is_pinned)

    def _stop_on(self, place: int) -> None:
        self._recording.remove(place)
        self._recordings[place].stop()
        self._members[place].chip.log.end_recording(self._operations)

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
