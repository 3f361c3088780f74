"""The chips of one LP as a model for the loop: one engine, an inbox for each SIP."""

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from runtime.core.simtime import NEVER_PS
from runtime.model.sip_fabric import SipFabric
from runtime.wire.frames import Message
from sip_node.chip.chip import Chip, SpecsOfSips
from sip_node.chip.context import ChipSpec
from sip_node.chip.exchanges.exchanges import Exchanges
from sip_node.chip.fast_forward import fast_forward
from sip_node.chip.partition import Egress, Partition
from sip_node.chip.ports.link_egress import LinkEnd
from sip_node.chip.ports.packet_runs import ArrivingTransfers, PacketRuns
from sip_node.chip.records.op_log import OpLog
from sip_node.kernel.exact import later_ps
from sip_node.pdes.engine import Engine
from sip_node.pdes.promises import SendBound
from sip_node.pdes.sync import Sync


class ChipModel:
    """The `Model` of an LP with chips on it."""

    def __init__(
        self, lp: int, partition: Partition, sync: Sync, spec: ChipSpec, logs: Mapping[int, OpLog]
    ) -> None:
        self.engine = Engine()
        self._forward = fast_forward(self.engine, spec.topology)
        self._held_ps = 0
        self._sync = sync
        self._egresses = {sip: partition.egresses(sip) for sip in partition.sips_of_lp[lp]}
        self._nearest = {sip: _nearest(of_sip.values()) for sip, of_sip in self._egresses.items()}
        specs = SpecsOfSips(spec)
        self.chips = {
            sip: Chip(specs.of(sip), sip, self.engine, logs[sip], self._forward)
            for sip in partition.sips_of_lp[lp]
        }
        # The targets whose packets pass the ports to other LPs.
        self._first_out = {sip: self._leaving_from(sip, spec.sips) for sip in self.chips}
        # Those that send to other LPs: at the edge of this one first, then by the distance to it.
        self._by_delay = sorted(
            (sip for sip, of_sip in self._nearest.items() if of_sip),
            key=lambda sip: (not self._first_out[sip], self._nearest[sip][0].delay_ps, sip),
        )
        self._most_hops = dict[int, int]()
        for each in (each for of_sip in self._nearest.values() for each in of_sip):
            hops = max(self._most_hops.get(each.peer, 0), 1 + each.remaining_hops)
            self._most_hops[each.peer] = hops
        self._outgoing: list[PacketRuns] = []
        self._forwarding = self._passing(spec.sips)
        self._incoming = ArrivingTransfers(partition.lp_of)
        for sip, chip in self.chips.items():
            leaving, first_out = self._egresses[sip].keys(), self._first_out[sip]
            # A set for each SIP would need memory of the square of their number.
            chip.send_bounds.only_to(leaving if first_out <= leaving else leaving | first_out)
            ends = {other: self._end(sip, other) for other in spec.sips.neighbours(sip)}
            chip.boundary.connect(ends)
            if chip.launches is not None:
                chip.launches.safe_ps = lambda: sync.safe_ps
                chip.launches.hold_until = self._hold_until
                chip.launches.share(len(self.chips))
            if self._egresses[sip]:
                chip.boundary.foresee()
        self._repeat_exchanges()

    def _repeat_exchanges(self) -> None:
        """Repeat collectives in an LP that has all SIPs."""
        launches = [each.launches for each in self.chips.values() if each.launches is not None]
        if not launches or any(self._egresses.values()):
            return
        exchanges = Exchanges(launches)
        for each in launches:
            each.exchanges = exchanges

    @property
    def skipped_steps(self) -> int:
        """The steps of matrix products that were computed ahead; see `FastForward`."""
        return 0 if self._forward is None else self._forward.skipped_steps

    def next_ps(self) -> int:
        """The time of the earliest event; of a launch that waits to be repeated, its end."""
        return self._held_ps or self.engine.next_ps()

    def run_before(self, bound_ps: int, at_most: int) -> int:
        """Execute the events before `bound_ps`, about `at_most` of them."""
        if self._held_ps >= self._sync.safe_ps:
            return 0
        self._held_ps = 0
        return self.engine.run_before(bound_ps, at_most)

    def _hold_until(self, safe_ps: int) -> None:
        """Execute no event until that time is safe, or a message has arrived.

        Before it, the chip sends no message, whether or not one arrives.
        """
        self._held_ps = safe_ps
        engine: Any = self.engine
        engine.hold()

    def _post(self) -> None:
        """Post the packets that have left the LP, or are certain to."""
        for runs in self._outgoing:
            egresses = self._egresses[runs.source]
            for sip, message in runs.take():
                # The remaining hops follow from the target of a transfer, not from the neighbour.
                egress = egresses[sip]
                self._sync.post(egress.peer, message, egress.remaining_hops)

    def deliver(self, message: Message) -> None:
        """Put the packets of a message into the inbox of its SIP.

        Raises `ProtocolError` for packets that do not continue their transfer, and for a packet or
        a credit which exceeds what its link allows.
        """
        self._held_ps = 0
        self._incoming.receive(message, self.chips[message.target].boundary)

    def earliest_sends(self, base_ps: int) -> list[SendBound]:
        """Bounds on the messages that leave the LP, from its kernels and its packets in flight.

        Posts the packets that have left, and those that are certain to leave before the bounds.
        """
        bounds = list(self._bounds(base_ps))
        self._post()
        return bounds

    def _bounds(self, base_ps: int) -> Iterator[SendBound]:
        """The bounds of `earliest_sends`, without those of SIPs that cannot lower any.

        No message leaves a SIP before `base_ps`, so one that is far from a channel does not count
        where a nearer one may send there earlier in any case.
        """
        bounds = SendTimesOfSips(self.chips, base_ps)
        least_ps = {peer: [NEVER_PS] * hops for peer, hops in self._most_hops.items()}
        for sip in self._by_delay:
            # Those at the edge of the LP also foresee what leaves.
            if not self._first_out[sip] and all(
                min(least_ps[each.peer][each.remaining_hops :]) <= later_ps(base_ps, each.delay_ps)
                for each in self._nearest[sip]
            ):
                continue
            for bound in self._bounds_of(sip, bounds):
                of_hops = least_ps[bound.peer]
                of_hops[bound.remaining_hops] = min(bound.time_ps, of_hops[bound.remaining_hops])
                yield bound

    def _bounds_of(self, sip: int, bounds: "SendTimesOfSips") -> Iterator[SendBound]:
        launch_ps, known_ps = bounds[sip]
        # Of a SIP without a link to another LP nothing is foreseen.
        if self._first_out[sip]:
            certain_ps = self._certain_ps(sip, bounds)
            launch_ps = min(launch_ps, self.chips[sip].send_bounds.foresee(certain_ps))
        for each in self._nearest[sip]:
            # A launch to come may send to any SIP, so its bound holds for every egress.
            yield SendBound(each.peer, each.remaining_hops, later_ps(launch_ps, each.delay_ps))
        egresses = self._egresses[sip]
        for target, send_ps in known_ps.items():
            each = egresses.get(target)
            if each is not None:
                yield SendBound(each.peer, each.remaining_hops, later_ps(send_ps, each.delay_ps))

    def _certain_ps(self, sip: int, bounds: "SendTimesOfSips") -> int:
        """No packet leaves the LP through `sip` earlier that has not reserved its last link."""
        launch_ps, known_ps = bounds[sip]
        first_out = self._first_out[sip]
        # Packets to other SIPs of this LP leave by other ports, and do not delay those of this
        # port.
        times_ps = [ps for target, ps in known_ps.items() if target in first_out]
        certain_ps = min(launch_ps, *times_ps) if times_ps else launch_ps
        if sip in self._forwarding:
            certain_ps = min(certain_ps, self._forwarded_ps(sip, bounds))
        return certain_ps

    def _forwarded_ps(self, sip: int, bounds: "SendTimesOfSips") -> int:
        """No packet of another SIP that has not come yet leaves the LP through `sip` earlier."""
        # Packets that pass this SIP share its port with its own, so they bound what is certain
        # there.
        first_ps = self._sync.forwarded_ps
        for other, nearest_ps in self._forwarding[sip].items():
            # They are in order of their distance: no farther one is here earlier.
            if later_ps(bounds.base_ps, nearest_ps) >= first_ps:
                break
            launch_ps, known_ps = bounds[other]
            # A launch to come may send to any target, and so to the nearest.
            first_ps = min(first_ps, later_ps(launch_ps, nearest_ps))
            egresses = self._egresses[other]
            for target, send_ps in known_ps.items():
                egress = egresses.get(target)
                if egress is not None and egress.last_sip == sip:
                    first_ps = min(first_ps, later_ps(send_ps, egress.delay_ps))
        return first_ps

    def check_at_rest(self) -> None:
        """Check that every transfer from other LPs has ended, after a run that has finished.

        Raises `ProtocolError`.
        """
        self._incoming.check_at_rest()

    def _leaving_from(self, sip: int, sips: SipFabric) -> AbstractSet[int]:
        """The targets whose packets leave the LP at `sip` itself, or pass the switch."""
        if sips.is_switched:
            return set(range(sips.sips)) - {sip}
        if self.chips.keys() >= set(sips.neighbours(sip)):
            return frozenset()
        hops = sips.next_hops(sip)
        return {target for target, hop in enumerate(hops) if hop not in self.chips}

    def _passing(self, sips: SipFabric) -> dict[int, dict[int, int]]:
        """SIP that others pass on their way out of the LP -> SIP of this LP -> a time, ascending.

        Packets from that SIP which leave the LP through the first one are there not before that
        time has passed.
        """
        passing: dict[int, dict[int, int]] = {
            sip: {}
            for sip, first_out in self._first_out.items()
            if first_out and sips.is_passed(sip)
        }
        for other, egresses in self._egresses.items():
            # Many targets have one egress.
            for egress in dict.fromkeys(egresses.values()):
                sip, delay_ps = egress.last_sip, egress.delay_ps
                if sip != other:
                    nearest = passing[sip]
                    nearest[other] = min(delay_ps, nearest.get(other, delay_ps))
        return {
            sip: dict(sorted(nearest.items(), key=lambda it: (it[1], it[0])))
            for sip, nearest in passing.items()
        }

    def _end(self, sip: int, neighbour: int) -> LinkEnd:
        """The other end of a link: the inbox of a SIP of this LP, or messages to another LP."""
        if neighbour in self.chips:
            return self.chips[neighbour].boundary.end
        runs = PacketRuns(sip, neighbour)
        self._outgoing.append(runs)
        return runs


class SendTimesOfSips(dict[int, tuple[int, Mapping[int, int]]]):
    """The result of `SendBounds.earliest_send_ps` of each SIP which is looked up, at `base_ps`."""

    def __init__(self, chips: Mapping[int, Chip], base_ps: int) -> None:
        super().__init__()
        self._chips, self.base_ps = chips, base_ps

    def __missing__(self, sip: int) -> tuple[int, Mapping[int, int]]:
        times = self[sip] = self._chips[sip].send_bounds.earliest_send_ps(self.base_ps)
        return times


def _nearest(egresses: Iterable[Egress]) -> tuple[Egress, ...]:
    """The egress with the least delay for each peer and number of remaining hops.

    Without those that another one for the same peer bounds: it is as near, and has more hops.
    """
    of_peer: dict[int, list[Egress]] = {}
    # Many targets have one egress. Of those with one delay, the most hops first.
    for egress in sorted(
        dict.fromkeys(egresses), key=lambda it: (it.peer, it.delay_ps, -it.remaining_hops)
    ):
        kept = of_peer.setdefault(egress.peer, [])
        if not kept or kept[-1].remaining_hops < egress.remaining_hops:
            kept.append(egress)
    return tuple(egress for kept in of_peer.values() for egress in kept)
