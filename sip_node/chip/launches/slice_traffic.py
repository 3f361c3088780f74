"""The packets of a launch at one slice of HBM, and what it does with them at other addresses.

A slice serves a packet by the channels that its bytes lie on. So blocks that have moved by part of
a round over the channels may be served at other times. Whether they are is found out by the model
itself: a slice of its own, with a clock of its own, gets the packets of the launch at their times,
with the other addresses. If its events are those of the launch, and its answers leave as they have
left, the rest of the chip has not noticed the difference.
"""

from array import array
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from hashlib import sha256
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from runtime.core.simtime import NEVER_PS
from sip_node.chip.context import ChipContext
from sip_node.chip.fabric.packet import FabricTransfer, Packet
from sip_node.chip.memory.packet_arrivals import PacketArrivals
from sip_node.chip.memory.storage import HbmController
from sip_node.chip.records.packet_train import PacketTrain, QueueTimes
from sip_node.chip.records.time_bins import TimeBins
from sip_node.pdes.engine import Engine

if TYPE_CHECKING:
    from sip_node.chip.launches.server_states import ServerChanges

Answer = tuple[int, int, int, int, int]
"""Time, tail, number of the transfer, first byte and size of a packet that leaves a slice."""


_TRANSFER = 160
"""Bytes of memory of a transfer."""


class _ArrivedPacket(NamedTuple):
    """A packet that arrives, of transfer number `transfer`, behind the first `turns` events of the
    slice; times and events count from the begin.
    """

    time_ps: int
    tail_ps: int
    transfer: int
    begin: int
    size: int
    last: int
    turns: int


class _AnswerSink:
    """The fabric of a slice of its own: it takes the packets that leave."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.answers: list[Answer] = []

    def send(self, packet: Packet, origin: int, tail_ps: int) -> None:  # noqa: ARG002
        """A packet leaves now."""
        transfer = packet.transfer
        self.answers.append((self._engine.now_ps, tail_ps, transfer.tag, packet.begin, packet.size))


class ServedSlice(NamedTuple):
    """The effects of packets on a slice: its answers, how long packets of each transfer have
    queued behind others, the changes of its channels and their services, and its events: when each
    was inserted, its time and its step. Of what is only compared, a SHA-256 is kept.
    """

    answers: bytes
    queued_ps: bytes
    changes: "ServerChanges"
    services: list[Any]
    events: bytes


class SliceTraffic:
    """The packets that have arrived at the slice at `node` in a launch."""

    __slots__ = "_arrivals", "_context", "_node", "_transfers"

    def __init__(self, context: ChipContext, node: int, arrived: PacketArrivals) -> None:
        self._context, self._node = context, node
        self._arrivals = arrived.fields
        self._transfers = [copy(each) for each in arrived.transfers]
        for each in self._transfers:
            # Its bytes would be kept with it.
            each.payload = b""

    @property
    def nbytes(self) -> int:
        """Bytes of memory, about."""
        return len(self._arrivals) * self._arrivals.itemsize + len(self._transfers) * _TRANSFER

    def served(self, distances: Mapping[int, int]) -> ServedSlice | None:
        """The effects of the packets if blocks from each address on have moved; None where its
        events come in another order.
        """
        from sip_node.chip.launches.server_states import ServerStates

        engine: Any = Engine()
        events = list[tuple[int, int, int]]()
        engine.inserted = events
        sink = _AnswerSink(engine)
        context: Any = replace(
            self._context.at(self._node),
            engine=engine,
            fabric=sink,  # type: ignore[arg-type] - of the fabric, it sends
            memory_ports={},
            data=False,
            loads=None,
        )
        controller = HbmController(context, self._node)
        channels: list[Any] = list(controller.channels.channels)
        has_loads = self._context.loads is not None
        if has_loads:
            for channel in channels:
                channel.bins = TimeBins()
                channel.bins.begin_log()
        states = ServerStates()
        states.add_channels(controller.channels)
        before, times = states.read(), [QueueTimes() for _ in self._transfers]
        transfers = self._moved(distances, times)
        packets = controller.port.packets
        for fields in zip(*[iter(self._arrivals)] * len(_ArrivedPacket._fields), strict=True):
            each = _ArrivedPacket(*fields)
            engine.run_before(each.time_ps)
            # Events of one time come before and behind the packet as they have come.
            while engine.next_ps() == each.time_ps and packets.turns < each.turns:
                engine.step()
            if packets.turns != each.turns:
                return None
            engine.now_ps = each.time_ps
            packet = Packet(transfers[each.transfer], each.begin, each.size, bool(each.last))
            packet.train = transfers[each.transfer].train
            packets.accept(packet, each.tail_ps)
        while engine.next_ps() < NEVER_PS:
            engine.run_before(engine.next_ps() + 1)
        changes = states.changes(before, states.read(), 0, 0)
        services = [channel.bins.template(0) for channel in channels] if has_loads else []
        return ServedSlice(
            answers=_digest(sink.answers),
            queued_ps=_digest([(each.memory_ps,) for each in times]),
            changes=changes,
            services=services,
            events=_digest(events),
        )

    def _moved(
        self, distances: Mapping[int, int], times: Sequence[QueueTimes]
    ) -> list[FabricTransfer]:
        """The transfers with other addresses; their tags are their numbers."""
        begins = sorted(distances)
        moved = list[FabricTransfer]()
        for number, transfer in enumerate(self._transfers):
            place = bisect_right(begins, transfer.address) - 1
            made = copy(transfer)
            made.address += distances[begins[place]] if place >= 0 else 0
            made.tag = number
            made.train = None if transfer.train is None else PacketTrain(times[number])
            moved.append(made)
        return moved


def _digest(rows: Sequence[tuple[int, ...]]) -> bytes:
    """The SHA-256 of rows of numbers, all of one length."""
    return sha256(array("q", chain.from_iterable(rows))).digest()
