"""Servers that move bytes one after the other, and the time of a message through several of them.

Packets are forwarded cut-through: a server starts a packet as soon as its head has arrived, and
releases its tail no earlier than the tail arrives. Let a message consist of n packets of P bytes
and a last packet of r bytes, and let S_j(x) be the time of x bytes at server j. Overheads and wires
aside, packet k starts at server j at k M_j, with M_j = max(S_1(P) .. S_j(P)): the slowest server so
far sets the pace. The last byte has passed server j at n M_j + S_j(r), and all servers after

    drain = max over j of (n M_j + S_j(r)).

For packets of one size this is the number of packets x the time of one at the slowest server.

A reader may have at most W packets in flight (`PacketWindow`). Let L be the time from the departure
of a request to the first byte of its answer, S the time of a full packet at the slowest server, and
R = L + S the round trip of one packet. Without a limit, packet k lands k S after the first. With W,
the request of packet k leaves when packet k - W has landed, R before its own packet can land. So W
packets land S apart, and the next W begin max(R, W S) after them:

    packet k lands floor(k / W) max(R, W S) + (k mod W) S after the first.

The rate is min(P / S, W P / R): Little's law, with W packets of P bytes in the round trip.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from kernbench.oracle.theory.roofline import bytes_ps
from runtime.core.simtime import PS_PER_NS


@dataclass(frozen=True)
class Serialiser:
    """A link or a memory that moves bytes at `bw_gbs` in total over all of its `channels`.

    With several channels, consecutive bursts of `burst_bytes` lie on consecutive channels. The
    first byte of a message starts a burst on the first channel. With `is_lower_bound` more than the
    bytes takes time, rows and refresh of a memory or the cycles of routers with credits, and every
    formula here is a lower bound.
    """

    bw_gbs: Fraction
    channels: int = 1
    burst_bytes: int = 1
    name: str = ""
    label: str = ""
    is_lower_bound: bool = False

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
    return ceil(bytes_ps(nbytes, gbs))


def packets(nbytes: int, packet_bytes: int) -> list[int]:
    """The sizes of the packets of a message; only the last one may be smaller."""
    full, rest = divmod(nbytes, packet_bytes)
    return [packet_bytes] * full + ([rest] if rest else [])


def serialised_ps(nbytes: int, packet_bytes: int, gbs: Fraction) -> int:
    """Time of a message on one link; each packet is rounded up to the picosecond on its own."""
    # The sum of rounded times is not the rounded sum: many small packets add up to whole ps.
    return sum(transfer_ps(size, gbs) for size in packets(nbytes, packet_bytes))


@dataclass(frozen=True)
class PacketWindow:
    """The limit of a reader: `packets` in flight.

    `latency_ps` is the time from the departure of a request to the first byte of its answer.
    """

    packets: int
    latency_ps: int

    def landing_ps(self, packet: int, packet_ps: int) -> int:
        """Time from the first byte until a packet has landed: the formula of this module.

        `packet_ps` is the time of a full packet at the slowest server.
        """
        rounds, rest = divmod(packet, self.packets)
        # A window is served either by the slowest server without a gap (W S), or in bursts that
        # each wait for a round trip (R).
        round_ps = max(self.latency_ps + packet_ps, self.packets * packet_ps)
        return packet_ps + rounds * round_ps + rest * packet_ps

    def gbs(self, packet_bytes: int, packet_ps: int) -> Fraction:
        """The bytes of a full window in a round trip."""
        # J. Little, "A proof for the queuing formula L = lambda W", Operations Research 9(3), 1961:
        # packets in flight are their rate times the round trip.
        return Fraction(self.packets * packet_bytes * PS_PER_NS, self.latency_ps + packet_ps)


def drain_ps(
    nbytes: int,
    packet_bytes: int,
    servers: Iterable[Serialiser],
    window: PacketWindow | None = None,
) -> int:
    """Time from the first to the last byte of a message behind all `servers`, in their order.

    The formula of this module. It is exact if each packet uses all channels of a memory equally, or
    if there is only one packet.
    """
    # nbytes - 1, so that the last packet has 1 to packet_bytes bytes and never none.
    # Cut-through: P. Kermani, L. Kleinrock, "Virtual cut-through: a new computer communication
    # switching technique", Computer Networks 3, 1979. The servers in a row are a (max, +) product:
    # F. Baccelli, G. Cohen, G. J. Olsder, J.-P. Quadrat, Synchronization and Linearity, 1992.
    full_packets, last_bytes = divmod(nbytes - 1, packet_bytes)
    slowest_ps = drain = last_ps = 0
    for server in servers:
        # Full packets arrive here at the pace of the slowest server so far. Only the last packet
        # matters for the end: a slow server for small packets can follow a fast one.
        slowest_ps = max(slowest_ps, server.service_ps(packet_bytes))
        drain = max(drain, full_packets * slowest_ps + server.service_ps(last_bytes + 1))
        last_ps = max(last_ps, server.service_ps(last_bytes + 1))
    if window is None or full_packets < window.packets:
        return drain
    # The request of the last packet leaves when the packet a window before it has landed.
    requested_ps = window.landing_ps(full_packets - window.packets, slowest_ps)
    return max(drain, requested_ps + window.latency_ps + last_ps)
