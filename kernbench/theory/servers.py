"""Servers that move bytes one after the other, and the time of a message through several of them.

Packets are forwarded cut-through: a server starts a packet as soon as its head has arrived, and
releases its tail no earlier than the tail arrives. Let a message consist of n packets of P bytes
and a last packet of r bytes, and let S_j(x) be the time of x bytes at server j. Overheads and wires
aside, packet k starts at server j at k M_j, with M_j = max(S_1(P) .. S_j(P)): the slowest server so
far sets the pace. The last byte has passed server j at n M_j + S_j(r), and all servers after

    drain = max over j of (n M_j + S_j(r)).

For packets of one size this is the number of packets x the time of one at the slowest server.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from runtime.core.simtime import PS_PER_NS


@dataclass(frozen=True)
class Serialiser:
    """A link or a memory that moves bytes at `bw_gbs` in total over all of its `channels`.

    With several channels, consecutive bursts of `burst_bytes` lie on consecutive channels. The
    first byte of a message starts a burst on the first channel.
    """

    bw_gbs: Fraction
    channels: int = 1
    burst_bytes: int = 1
    name: str = ""
    label: str = ""

    def service_ps(self, nbytes: int) -> int:
        """Time of `nbytes` on the channel which gets most of them, rounded up to the picosecond."""
        # The first channel gets a burst in each round, also in the last, partial one: no channel
        # gets more.
        rounds, rest = divmod(nbytes, self.round_bytes)
        busiest_bytes = rounds * self.burst_bytes + min(rest, self.burst_bytes)
        return ceil(busiest_bytes * PS_PER_NS * self.channels / self.bw_gbs)

    @property
    def round_bytes(self) -> int:
        """Bytes of one burst on every channel."""
        return self.burst_bytes * self.channels


def transfer_ps(nbytes: int, gbs: Fraction) -> int:
    """Time of `nbytes` at a bandwidth, rounded up to the picosecond as in the simulator."""
    return ceil(nbytes * PS_PER_NS / gbs)


def packets(nbytes: int, packet_bytes: int) -> list[int]:
    """The sizes of the packets of a message; only the last one may be smaller."""
    full, rest = divmod(nbytes, packet_bytes)
    return [packet_bytes] * full + ([rest] if rest else [])


def serialised_ps(nbytes: int, packet_bytes: int, gbs: Fraction) -> int:
    """Time of a message on one link; each packet is rounded up to the picosecond on its own."""
    # The sum of rounded times is not the rounded sum: many small packets add up to whole ps.
    return sum(transfer_ps(size, gbs) for size in packets(nbytes, packet_bytes))


def drain_ps(nbytes: int, packet_bytes: int, servers: Iterable[Serialiser]) -> int:
    """Time from the first to the last byte of a message behind all `servers`, in their order.

    The formula of this module. It is exact if each packet uses all channels of a memory equally, or
    if there is only one packet.
    """
    # nbytes - 1, so that the last packet has 1 to packet_bytes bytes and never none.
    full_packets, last_bytes = divmod(nbytes - 1, packet_bytes)
    slowest_ps = drain = 0
    for server in servers:
        # Full packets arrive here at the pace of the slowest server so far. Only the last packet
        # matters for the end: a slow server for small packets can follow a fast one.
        slowest_ps = max(slowest_ps, server.service_ps(packet_bytes))
        drain = max(drain, full_packets * slowest_ps + server.service_ps(last_bytes + 1))
    return drain
