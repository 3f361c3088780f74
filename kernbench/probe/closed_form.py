"""The closed form of an uncontended transfer: overhead + wire + drain.

A transfer is one or two messages, the legs: request and data, or data and acknowledgement. The head of a leg pays every
overhead and wire of its way; then its bytes drain through the narrowest place.

Drain of n packets of P bytes and a last one of r bytes through serialisers 1..m. Packets are cut through, so packet k starts at
serialiser j, apart from overheads and wires, k x M_j after the first one, where M_j = max(S_1(P)..S_j(P)) is the longest
service of a full packet so far. The last byte has passed j after n x M_j + S_j(r), and all of them after

    drain = max over j of  n x M_j + S_j(r).

For one packet, and for many of equal size, that is bytes / narrowest bandwidth.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from kernbench.probe.way import Serialiser, Way

LegName = Literal["request", "data", "ack"]


@dataclass(frozen=True)
class Leg:
    """One message of a transfer over `way`: `nbytes` in packets of `packet_bytes`, out of `source` and into `sink`."""

    name: LegName
    way: Way
    nbytes: int
    packet_bytes: int
    source: Serialiser | None = None
    sink: Serialiser | None = None

    @property
    def overhead_ps(self) -> int:
        """Of all components entered."""
        return sum(hop.overhead_ps for hop in self.way)

    @property
    def wire_ps(self) -> int:
        """Of all wires."""
        return sum(hop.wire_ps for hop in self.way)

    @property
    def drain_ps(self) -> int:
        """From the first to the last byte at the end of the way: exact, or a lower bound, as `exact` says."""
        if not self.exact:
            return max(each.service_ps(self.nbytes) for each in self._serialisers())
        full, last_bytes = divmod(self.nbytes - 1, self.packet_bytes)
        slowest_ps = drain_ps = 0
        for each in self._serialisers():
            slowest_ps = max(slowest_ps, each.service_ps(self.packet_bytes))
            drain_ps = max(drain_ps, full * slowest_ps + each.service_ps(last_bytes + 1))
        return drain_ps

    @property
    def exact(self) -> bool:
        """Whether the formula is exact: not if packets leave some channels of a memory idle, which then hold up others."""
        rounds = (
            self.packet_bytes % each.round_bytes == 0
            for each in self._serialisers()
            if each.channels > 1
        )
        return self.nbytes <= self.packet_bytes or all(rounds)

    @property
    def bottleneck(self) -> Serialiser:
        """The first of the places that take longest for the bytes."""
        return max(self._serialisers(), key=lambda each: each.service_ps(self.nbytes))

    def _serialisers(self) -> Iterator[Serialiser]:
        """In the order in which the bytes pass."""
        if self.source:
            yield self.source
        for hop in self.way:
            if hop.link:
                yield hop.link
        if self.sink:
            yield self.sink


@dataclass(frozen=True)
class ClosedForm:
    """The closed form of a transfer, leg after leg."""

    legs: tuple[Leg, ...]

    @property
    def overhead_ps(self) -> int:
        """Of all components entered, there and back."""
        return sum(leg.overhead_ps for leg in self.legs)

    @property
    def wire_ps(self) -> int:
        """Of all wires, there and back."""
        return sum(leg.wire_ps for leg in self.legs)

    @property
    def drain_ps(self) -> int:
        """Of the data, and of the request or acknowledgement."""
        return sum(leg.drain_ps for leg in self.legs)

    @property
    def total_ps(self) -> int:
        """Overhead + wire + drain."""
        return self.overhead_ps + self.wire_ps + self.drain_ps

    @property
    def exact(self) -> bool:
        """Whether `total_ps` is what a transfer takes; else it takes at least that."""
        return all(leg.exact for leg in self.legs)

    @property
    def bottleneck(self) -> Serialiser:
        """What limits the data."""
        [data] = [leg for leg in self.legs if leg.name == "data"]
        return data.bottleneck

    def holds(self, measured_ps: int) -> bool:
        """Whether a measured time agrees."""
        return measured_ps == self.total_ps if self.exact else measured_ps >= self.total_ps
