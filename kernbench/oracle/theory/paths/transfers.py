"""Closed form of an uncontended transfer: overheads + wires + drain.

A transfer consists of one or two messages, its legs: a request and its data, or data and their
acknowledgement. The head of a message pays each overhead and each wire of its route; then its bytes
drain through the slowest server (formula in `servers`). Overheads and wires are rounded to the
nearest picosecond, the time of each packet on a link is rounded up.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from kernbench.oracle.theory.servers import PacketWindow, Serialiser, drain_ps

LegName = Literal["request", "data", "ack"]


@dataclass(frozen=True)
class TimedHop:
    """One hop into the component `node`; `link` is None where the link has no bandwidth limit."""

    node: str
    overhead_ps: int
    wire_ps: int
    link: Serialiser | None = None

    @property
    def latency_ps(self) -> int:
        """The time of the head of a message, from the component before."""
        return self.overhead_ps + self.wire_ps


@dataclass(frozen=True)
class Leg:
    """One message of a transfer: `nbytes` in packets of `packet_bytes`, from `source` to `sink`.

    `source` and `sink` are the memories at the ends of the route, where these limit the bandwidth.
    `window` is the limit of a DMA that reads.
    """

    name: LegName
    hops: tuple[TimedHop, ...]
    nbytes: int
    packet_bytes: int
    source: Serialiser | None = None
    sink: Serialiser | None = None
    window: PacketWindow | None = None

    @property
    def overhead_ps(self) -> int:
        """Sum of the overheads of all components entered."""
        return sum(hop.overhead_ps for hop in self.hops)

    @property
    def wire_ps(self) -> int:
        """Sum of the delays of all wires."""
        return sum(hop.wire_ps for hop in self.hops)

    @property
    def latency_ps(self) -> int:
        """The time of the head."""
        return self.overhead_ps + self.wire_ps

    @property
    def total_ps(self) -> int:
        """Time from the departure to the arrival of the last byte."""
        return self.latency_ps + self.drain_ps

    @property
    def drain_ps(self) -> int:
        """Time from the first to the last byte at the end: exact, or a lower bound, see `exact`."""
        if not self.exact:
            # No server can be faster than all its bytes at once: a bound without any assumption.
            return max(server.service_ps(self.nbytes) for server in self._servers())
        return drain_ps(self.nbytes, self.packet_bytes, self._servers(), self.window)

    @property
    def exact(self) -> bool:
        """Whether the formula is exact.

        It is not where a packet leaves some channels of a memory idle: the packets of a message
        then use different channels, and the most loaded channel delays packets which need others.
        Nor is it for a memory with rows, and for a link between routers with credits.
        """
        if any(server.is_lower_bound for server in self._servers()):
            return False
        whole_rounds = (
            self.packet_bytes % server.round_bytes == 0
            for server in self._servers()
            if server.channels > 1
        )
        return self.nbytes <= self.packet_bytes or all(whole_rounds)

    @property
    def bottleneck(self) -> Serialiser:
        """The server with the longest time for these bytes; the first of several.

        For more bytes than the window holds it may be the window, as a server of its bandwidth.
        """
        slowest = max(self._servers(), key=lambda server: server.service_ps(self.nbytes))
        if self.window is None or self.nbytes <= self.window.packets * self.packet_bytes:
            return slowest
        gbs = self.window.gbs(self.packet_bytes, slowest.service_ps(self.packet_bytes))
        limit = Serialiser(gbs, name="window", label="DMA window")
        return max((slowest, limit), key=lambda server: server.service_ps(self.nbytes))

    def _servers(self) -> Iterator[Serialiser]:
        """Servers of the transfer, in the order in which the bytes pass them."""
        if self.source:
            yield self.source
        for hop in self.hops:
            if hop.link:
                yield hop.link
        if self.sink:
            yield self.sink


@dataclass(frozen=True)
class TransferForm:
    """The closed form of a transfer: its legs one after the other."""

    legs: tuple[Leg, ...]

    @property
    def overhead_ps(self) -> int:
        """Sum of all overheads, in both directions."""
        return sum(leg.overhead_ps for leg in self.legs)

    @property
    def wire_ps(self) -> int:
        """Sum of all wire delays, in both directions."""
        return sum(leg.wire_ps for leg in self.legs)

    @property
    def drain_ps(self) -> int:
        """Drain of the data, and of the request or acknowledgement."""
        return sum(leg.drain_ps for leg in self.legs)

    @property
    def total_ps(self) -> int:
        """Overheads + wires + drain."""
        return self.overhead_ps + self.wire_ps + self.drain_ps

    @property
    def exact(self) -> bool:
        """Whether `total_ps` is the time of the transfer; otherwise it is a lower bound."""
        return all(leg.exact for leg in self.legs)

    @property
    def latency_ps(self) -> int:
        """The whole time without that of the bytes of the data."""
        return self.total_ps - self.data.drain_ps

    @property
    def data(self) -> Leg:
        """The leg of the data."""
        [data] = [leg for leg in self.legs if leg.name == "data"]
        return data

    @property
    def bottleneck(self) -> Serialiser:
        """The server that limits the bandwidth of the data."""
        return self.data.bottleneck

    def agrees_with(self, measured_ps: int) -> bool:
        """Whether a measured time equals the closed form, or is not below the lower bound."""
        return measured_ps == self.total_ps if self.exact else measured_ps >= self.total_ps
