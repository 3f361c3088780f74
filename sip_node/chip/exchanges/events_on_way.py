"""All that is to come in an LP when its chips begin or end launches together.

Beside the launches it is answers on their way to hosts, and credits on their way to queues: at a
stage of their route on a chip, in a link between two SIPs, or at the queues of a PE. Each of them
has a `key`, equal for two that are at the same place after the same time, and can be made again.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from sip_node.chip.exchanges.chips_of_lp import ChipsOfLp
from sip_node.chip.exchanges.credit import Credit, Key, NotAlone
from sip_node.chip.fabric.packet import Kind, Packet
from sip_node.chip.host.commands import RequestDone
from sip_node.chip.host.launch_events import GatheredAnswer, LaunchBegin
from sip_node.chip.pe.ipcq import PeIpcq


class Moment(NamedTuple):
    """The begin or the end of launches, at `base_ps`; `answers` were on their way at the begin."""

    chips: ChipsOfLp
    base_ps: int
    answers: Sequence[Packet]


class EventOnWay:
    """Something that is to come on the chip at `place`, `after_ps` behind a moment."""

    def __init__(self, place: int, after_ps: int, *key: Any) -> None:
        self.place, self.after_ps = place, after_ps
        self.key: Key = (type(self).__name__, after_ps, *key)

    def insert(self, moment: Moment) -> None:
        """Let it come again, behind the end of launches."""

    def remove(self, moment: Moment) -> None:
        """Forget it at the begin of launches: it has been removed from the calendar."""


class BeginOnChip(EventOnWay):
    """A launch that begins now."""

    def __init__(self, place: int, begin: LaunchBegin) -> None:
        super().__init__(place, 0)
        self.begin = begin


class EndOnChip(EventOnWay):
    """The end of a launch, of the request with a tag."""

    def __init__(self, place: int, after_ps: int, tag: int) -> None:
        super().__init__(place, after_ps)
        self.tag = tag


class AnswerOnWay(EventOnWay):
    """An answer to an earlier command on its way to the host: `number` among those at the begin of
    the launches, once it is known.
    """

    def __init__(
        self, place: int, after_ps: int, step: int, tail_after_ps: int, packet: Packet
    ) -> None:
        super().__init__(place, after_ps, step, tail_after_ps)
        self._step, self._tail_after_ps, self.packet = step, tail_after_ps, packet
        self.number = -1

    def insert(self, moment: Moment) -> None:
        """See `EventOnWay`."""
        chip, base_ps = moment.chips.chips[self.place], moment.base_ps
        chip.fabric.rejoin(
            moment.answers[self.number],
            chip.context.graph.io_cpu,
            self._step,
            base_ps + self.after_ps,
            base_ps + self._tail_after_ps,
        )


class CreditOnRoute(EventOnWay):
    """A credit at a stage of its route."""

    def __init__(
        self,
        place: int,
        after_ps: int,
        step: int,
        tail_after_ps: int,
        credit: Credit,
        packet: Packet,
    ) -> None:
        super().__init__(place, after_ps, step, tail_after_ps, credit.key)
        self._step, self._tail_after_ps, self._packet = step, tail_after_ps, packet
        self.credit = credit

    def insert(self, moment: Moment) -> None:
        """See `EventOnWay`."""
        chip, base_ps = moment.chips.chips[self.place], moment.base_ps
        context, packet = chip.context, self.credit.packet(base_ps)
        transfer = packet.transfer
        is_own = transfer.source_sip == context.sip
        chip.fabric.rejoin(
            packet,
            transfer.source_node if is_own else context.graph.io_noc,
            self._step,
            base_ps + self.after_ps,
            base_ps + self._tail_after_ps,
        )
        if transfer.sip != context.sip:
            context.send_bounds.departed(transfer.sip, packet.entrance_ps)

    def remove(self, moment: Moment) -> None:
        """See `EventOnWay`."""
        context, sip = moment.chips.chips[self.place].context, self._packet.transfer.sip
        if sip != context.sip:
            context.send_bounds.entered(sip, self._packet.entrance_ps)


class CreditInLink(NamedTuple):
    """A credit that comes from a SIP: `seq` counts from what that SIP sends next."""

    source: int
    seq: int
    tail_after_ps: int
    credit: Credit

    @property
    def key(self) -> Key:
        """See `EventOnWay`."""
        return self.source, self.seq, self.tail_after_ps, self.credit.key


class CreditsInLink(EventOnWay):
    """Credits that come from other SIPs at one time."""

    def __init__(self, place: int, after_ps: int, arriving: Sequence[CreditInLink]) -> None:
        super().__init__(place, after_ps, *[each.key for each in arriving])
        self.arriving = arriving

    def insert(self, moment: Moment) -> None:
        """See `EventOnWay`."""
        chips, base_ps, _ = moment
        chip = chips.chips[self.place]
        for each in self.arriving:
            chip.chip.boundary.arrive(
                base_ps + self.after_ps,
                each.source,
                chips.sent(each.source, chip) + each.seq,
                base_ps + each.tail_after_ps,
                each.credit.packet(base_ps),
            )

    def remove(self, moment: Moment) -> None:
        """See `EventOnWay`."""
        context = moment.chips.chips[self.place].context
        for each in self.arriving:
            # One that goes on to another SIP is in flight from here already.
            if each.credit.sip != context.sip:
                context.send_bounds.entered(each.credit.sip, moment.base_ps + self.after_ps)


class CreditAtQueues(EventOnWay):
    """A credit that the queues of its PE process."""

    def __init__(self, place: int, after_ps: int, ipcq: PeIpcq, credit: Credit) -> None:
        super().__init__(place, after_ps, credit.key)
        self._ipcq, self.credit = ipcq, credit

    def insert(self, moment: Moment) -> None:
        """See `EventOnWay`."""
        arrived_ps = moment.base_ps + self.after_ps - self._ipcq.overhead_ps
        self._ipcq.accept(self.credit.packet(moment.base_ps), arrived_ps)


class _CalendarEvent(NamedTuple):
    """An event of the calendar."""

    time_ps: int
    actor: object
    step: int
    tail_ps: int
    subject: Any


def events_on_way(chips: ChipsOfLp) -> list[EventOnWay]:
    """All that is to come, in its order; raises `NotAlone` for anything else."""
    pending = chips.engine.events_to_come()
    if pending is None:
        raise NotAlone
    base_ps = chips.engine.now_ps
    return [_event(chips, base_ps, _CalendarEvent(*each)) for each in pending]


def answers_of(on_way: Sequence[EventOnWay]) -> list[Packet]:
    """The answers on their way, by chip."""
    answers = [each for each in on_way if isinstance(each, AnswerOnWay)]
    return [each.packet for each in sorted(answers, key=lambda answer: answer.place)]


def _event(chips: ChipsOfLp, base_ps: int, pending: _CalendarEvent) -> EventOnWay:
    actor, subject, after_ps = pending.actor, pending.subject, pending.time_ps - base_ps
    tail_after_ps = pending.tail_ps - base_ps
    if actor is None:
        called, _ = subject
        return _call(chips, after_ps, called)
    if (place := chips.place_of_inbox(actor)) is not None:
        return _in_link(chips, base_ps, place, after_ps)
    if (place := chips.place_of_fabric(actor)) is not None:
        if subject.transfer.kind == Kind.IPCQ_CREDIT:
            credit = Credit(chips, subject, base_ps)
            return CreditOnRoute(place, after_ps, pending.step, tail_after_ps, credit, subject)
        _check_answer(chips, place, subject)
        return AnswerOnWay(place, after_ps, pending.step, tail_after_ps, subject)
    if isinstance(actor, PeIpcq) and subject.transfer.kind == Kind.IPCQ_CREDIT:
        place = chips.place_of_sip(subject.transfer.sip)
        return CreditAtQueues(place, after_ps, actor, Credit(chips, subject, base_ps))
    raise NotAlone


def _call(chips: ChipsOfLp, after_ps: int, called: object) -> EventOnWay:
    match called:
        case LaunchBegin() if not after_ps and called.launch.thread == "collectives":
            return BeginOnChip(chips.place_of_sip(called.io_cpu.sip), called)
        case GatheredAnswer() if (tag := called.ends) is not None:
            return EndOnChip(chips.place_of_sip(called.transfer.sip), after_ps, tag)
        case _:
            raise NotAlone


def _check_answer(chips: ChipsOfLp, place: int, packet: Packet) -> None:
    transfer, host = packet.transfer, chips.chips[place].chip.host
    if (
        transfer.kind is not Kind.CONTROL
        or not isinstance(transfer.body, RequestDone)
        # The program would go on, and might submit a command.
        or host.is_awaited(transfer.tag)
    ):
        raise NotAlone


def _in_link(chips: ChipsOfLp, base_ps: int, place: int, after_ps: int) -> CreditsInLink:
    chip, arriving = chips.chips[place], list[CreditInLink]()
    for time_ps, source, seq, tail_ps, packet in chip.chip.boundary.inbox.waiting():
        if time_ps - base_ps == after_ps:
            if packet.transfer.kind != Kind.IPCQ_CREDIT:
                raise NotAlone
            credit = Credit(chips, packet, base_ps)
            sent = chips.sent(source, chip)
            arriving.append(CreditInLink(source, seq - sent, tail_ps - base_ps, credit))
    return CreditsInLink(place, after_ps, arriving)
