"""All that is to come in an LP when its chips begin or end launches together.

Beside the launches it is answers on their way to hosts, and credits on their way to queues: at a
stage of their route on a chip, in a link between two SIPs, or at the queues of a PE. Each of them
has a `key`, equal for two that are at the same place after the same time, and can be made again.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from sip_node.chip.exchanges.chips_of_lp import ChipsOfLp
from sip_node.chip.exchanges.credit import Credit, Key, NotAlone
from sip_node.chip.exchanges.held_chips import HeldChip
from sip_node.chip.fabric.packet import Kind, Packet
from sip_node.chip.host.commands import RequestDone
from sip_node.chip.pe.ipcq import PeIpcq


class Moment(NamedTuple):
    """The begin or the end of launches, on each chip at a time of its own among `times_ps`;
    `answers` were on their way at the begin.
    """

    chips: ChipsOfLp
    times_ps: Sequence[int]
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
        chip, base_ps = moment.chips.chips[self.place], moment.times_ps[self.place]
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
        chip, base_ps = moment.chips.chips[self.place], moment.times_ps[self.place]
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
        chips, base_ps = moment.chips, moment.times_ps[self.place]
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
                context.send_bounds.entered(
                    each.credit.sip, moment.times_ps[self.place] + self.after_ps
                )


class CreditAtQueues(EventOnWay):
    """A credit that the queues of its PE process."""

    def __init__(self, place: int, after_ps: int, ipcq: PeIpcq, credit: Credit) -> None:
        super().__init__(place, after_ps, credit.key)
        self._ipcq, self.credit = ipcq, credit

    def insert(self, moment: Moment) -> None:
        """See `EventOnWay`."""
        base_ps = moment.times_ps[self.place]
        arrived_ps = base_ps + self.after_ps - self._ipcq.overhead_ps
        self._ipcq.accept(self.credit.packet(base_ps), arrived_ps)


def events_on_way(chips: ChipsOfLp, held: Sequence[HeldChip]) -> list[EventOnWay]:
    """All that is to come on the chips, which are held; raises `NotAlone` for anything else."""
    return [
        _event(chips, place, chip.time_ps, each)
        for place, chip in enumerate(held)
        for each in chip.events
    ]


def answers_of(on_way: Sequence[EventOnWay]) -> list[Packet]:
    """The answers on their way, by chip."""
    answers = [each for each in on_way if isinstance(each, AnswerOnWay)]
    return [each.packet for each in sorted(answers, key=lambda answer: answer.place)]


def _event(chips: ChipsOfLp, place: int, base_ps: int, pending: Any) -> EventOnWay:
    actor, packet, after_ps = pending.actor, pending.subject, pending.time_ps - base_ps
    tail_after_ps = pending.tail_ps - base_ps
    if chips.place_of_inbox(actor) is not None:
        return _in_link(chips, base_ps, place, after_ps)
    if actor is None:
        raise NotAlone
    is_credit = packet.transfer.kind == Kind.IPCQ_CREDIT
    if chips.place_of_fabric(actor) is not None:
        if is_credit:
            credit = Credit(chips, packet, base_ps)
            return CreditOnRoute(place, after_ps, pending.step, tail_after_ps, credit, packet)
        _check_answer(chips, place, packet)
        return AnswerOnWay(place, after_ps, pending.step, tail_after_ps, packet)
    if isinstance(actor, PeIpcq) and is_credit:
        return CreditAtQueues(place, after_ps, actor, Credit(chips, packet, base_ps))
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
