"""The install plan: the queue pairs of every PE of a SIP, from topology, mapper and algorithm.
Pure, and equal on every rank.

A rank computes the addresses of its peers' receive rings: the plan is a function of the
configuration files and of the groups that all ranks have made.
"""

from collections.abc import Mapping
from typing import TypeVar

from runtime.ccl.checked_functions import CheckedFunctions
from runtime.ccl.config import CclConfig, load_ccl
from runtime.ccl.group import Group
from runtime.ccl.mappers import MAPPERS, CubePe
from runtime.ccl.mappers import Mapping as PeMapping
from runtime.ccl.topologies import RECEIVE_ONLY, TOPOLOGIES
from runtime.core.coordinates import PeCoordinates
from runtime.core.errors import ConfigError
from runtime.core.registry import look_up
from runtime.core.requests import QueuePair
from runtime.model.addresses import AddressMap
from runtime.model.allocation import allocatable_bytes, ring_offset
from runtime.model.directions import OPPOSITE
from runtime.model.parts.usable_pes import UsablePes
from runtime.model.topology import Topology, load_topology

Plan = Mapping[CubePe, tuple[QueuePair, ...]]
_T = TypeVar("_T")
_NO_RANK = -1
"""Stands for the rank of a PE that has no neighbours in other SIPs."""


class InstallPlan:
    """The queue table of one algorithm of one group, or of one key of `queues`, for any of its
    SIPs.

    `ring_bytes_a_pe` are the bytes of all receive rings of one PE, equal for every PE. They lie
    below `above_bytes` bytes of other tables.
    """

    def __init__(self, group: Group, source: str, above_bytes: int = 0) -> None:
        self._group, self._config, self._source = group, group.algorithm, source
        self._addresses = AddressMap(group.topology)
        functions = CheckedFunctions(source, self._config.key_path)
        mapper = self._look_up("mapper", self._config.mapper, MAPPERS)
        self.mapping: PeMapping = functions.mapping(mapper, group.topology, group.root_cube)
        between_sips = self._look_up("topology", group.sip_topology, TOPOLOGIES)
        self._between_ranks = functions.neighbours(
            between_sips, group.world_size, (group.grid_w, group.grid_h)
        )
        one_way = RECEIVE_ONLY.get(group.sip_topology, frozenset())
        self._receive_only = frozenset(map(_global, one_way))
        self._send_only = frozenset(OPPOSITE[direction] for direction in self._receive_only)
        self._rank_of = {sip: rank for rank, sip in enumerate(group.sips)}
        # Computed on demand, since an LP needs its own SIPs and their peers only. All PEs that
        # exchange with other SIPs have the same neighbours there, so it is done once for a rank:
        # in a full connection it would take the square of the ranks for every PE.
        self._leading_to: dict[int, dict[int, list[str]]] = {}
        self._ring_numbers: dict[tuple[int, tuple[str, ...]], dict[str, int]] = {}
        self._first_rings: dict[PeCoordinates, int] = {}
        # The maximum over all PEs, and not the rings of each: a peer must find the ring of a PE
        # from this number and the PE's coordinates.
        self.ring_bytes_a_pe = self._most_rings() * self._config.ring_bytes
        self.above_bytes = above_bytes

    def of_sip(self, sip: int) -> Plan:
        """The queue pairs of every PE of a SIP that has any; `ConfigError` if the rings of a PE do
        not fit.
        """
        self._check_capacity()
        self._check_usable(sip)
        plan = {
            coordinates: self._pairs(PeCoordinates(sip, *coordinates))
            for coordinates in self.mapping.participants
        }
        return {coordinates: pairs for coordinates, pairs in plan.items() if pairs}

    def _check_usable(self, sip: int) -> None:
        """Refuse an algorithm with a PE that is down: its neighbours would wait for it."""
        try:
            use = f"mapper {self._config.mapper!r}"
            UsablePes(self._group.topology, sip).require(self.mapping.participants, use)
        except ValueError as error:
            advice = "leader_only and all_pes take those that are not"
            raise ConfigError(
                self._source, f"{self._config.key_path}.mapper", f"{error}; {advice}"
            ) from error

    def _most_rings(self) -> int:
        """The receive rings of the PE that has the most of them."""
        between_sips = max(
            (len(set(map(_global, each)) - self._send_only) for each in self._between_ranks),
            default=0,
        )
        return max(
            (
                len(self.mapping.local.get(coordinates, {}))
                + between_sips * (coordinates in self.mapping.exchange)
                for coordinates in self.mapping.participants
            ),
            default=0,
        )

    def _check_capacity(self) -> None:
        config, topology = self._config, self._group.topology
        # In SRAM, which the PEs of a cube share, the rings of the last PE lie lowest: if these fit,
        # so do all others.
        kind, last_pe = config.buffer_kind, topology.pes_per_cube - 1
        if ring_offset(topology, kind, last_pe, self.ring_bytes_a_pe, self.above_bytes) >= 0:
            return
        slots = f"{config.n_slots} slots of {config.slot_size:,} bytes"
        rings = f"{self._most_rings()} receive rings a PE of {slots}"
        others = (
            f" below {self.above_bytes:,} bytes a PE of other queues" if self.above_bytes else ""
        )
        capacity = f"the {allocatable_bytes(topology, kind):,} bytes of {kind}"
        shared = f", which {topology.pes_per_cube} PEs share" if kind == "sram" else ""
        advice = "use smaller n_slots or slot_size, or another buffer_kind"
        problem = f"{rings}{others} do not fit {capacity}{shared}: {advice}"
        raise ConfigError(self._source, config.key_path, problem)

    def _pairs(self, pe: PeCoordinates) -> tuple[QueuePair, ...]:
        return tuple(self._pair(pe, direction, peer) for direction, peer in self._peers(pe).items())

    def _pair(self, pe: PeCoordinates, direction: str, peer: PeCoordinates) -> QueuePair:
        config, back = self._config, self._reverse(pe, direction, peer)
        return QueuePair(
            direction=direction,
            peer=peer,
            peer_direction=back,
            rx_base=self._ring(pe, direction),
            tx_base=self._ring(peer, back),
            n_slots=config.n_slots,
            slot_size=config.slot_size,
            credit_bytes=config.ipcq_credit_size_bytes,
            packet_bytes=config.vc_chunk_size,
        )

    def _reverse(self, pe: PeCoordinates, direction: str, peer: PeCoordinates) -> str:
        """The peer's direction to this PE: the opposite point of the compass, or else the only one
        that leads here.
        """
        # On a ring of two, E and W lead to the same peer: only the compass distinguishes the pairs.
        opposite = OPPOSITE.get(direction)
        back = self._directions_to(pe, peer)
        if opposite in back:
            return opposite
        if opposite is None and len(back) == 1:
            return back[0]
        rule = f"from where {opposite or 'one direction'} has to lead back"
        problem = f"{direction} leads from {pe} to {peer}, {rule}; there are "
        raise ConfigError(
            self._source,
            f"{self._config.key_path}.topology",
            problem + (", ".join(back) or "none"),
        )

    def _directions_to(self, pe: PeCoordinates, peer: PeCoordinates) -> list[str]:
        """The directions that lead from `peer` to this PE, sorted."""
        if pe.sip == peer.sip:
            local, coordinates = self.mapping.local.get((peer.cube, peer.pe), {}), (pe.cube, pe.pe)
            return sorted(direction for direction, other in local.items() if other == coordinates)
        rank = self._rank_of[peer.sip]
        leading_to = self._leading_to.get(rank)
        if leading_to is None:
            leading_to = self._leading_to[rank] = {}
            for direction, other in self._between_ranks[rank].items():
                leading_to.setdefault(other, []).append(_global(direction))
        return sorted(leading_to.get(self._rank_of[pe.sip], ()))

    def _peers(self, pe: PeCoordinates) -> dict[str, PeCoordinates]:
        """Direction -> peer, with directions in sorted order: the order of the rings in memory."""
        coordinates, sips = (pe.cube, pe.pe), self._group.sips
        peers = {
            direction: PeCoordinates(pe.sip, *peer)
            for direction, peer in self.mapping.local.get(coordinates, {}).items()
        }
        if coordinates in self.mapping.exchange:
            for direction, rank in self._between_ranks[self._rank_of[pe.sip]].items():
                peers[_global(direction)] = PeCoordinates(sips[rank], *coordinates)
        return dict(sorted(peers.items()))

    def _ring(self, pe: PeCoordinates, direction: str) -> int | None:
        """The physical address of the receive ring of a PE for a direction, None if it only sends
        there.
        """
        number = self._numbers(pe).get(direction)
        if number is None:
            return None
        first = self._first_rings.get(pe)
        if first is None:
            first = self._first_rings[pe] = self._first_ring(pe)
        return first + number * self._config.ring_bytes

    def _numbers(self, pe: PeCoordinates) -> dict[str, int]:
        """The directions from which a PE receives, numbered in sorted order."""
        coordinates = (pe.cube, pe.pe)
        rank = self._rank_of[pe.sip] if coordinates in self.mapping.exchange else _NO_RANK
        key = rank, tuple(self.mapping.local.get(coordinates, ()))
        numbers = self._ring_numbers.get(key)
        if numbers is None:
            # Sorted: the order of the rings in memory, which every rank computes alike.
            receiving = sorted({*self._peers(pe)} - self._send_only)
            numbers = {direction: number for number, direction in enumerate(receiving)}
            self._ring_numbers[key] = numbers
        return numbers

    def _first_ring(self, pe: PeCoordinates) -> int:
        """The physical address of the rings of a PE."""
        addresses, kind = self._addresses, self._config.buffer_kind
        offset = ring_offset(
            self._group.topology, kind, pe.pe, self.ring_bytes_a_pe, self.above_bytes
        )
        match kind:
            case "tcm":
                return addresses.pe_tcm_addr(*pe, offset)
            case "hbm":
                return addresses.pe_hbm_addr(*pe, offset)
            case "sram":
                return addresses.cube_sram_addr(pe.sip, pe.cube, offset)

    def _look_up(self, key: str, name: str, registry: Mapping[str, _T]) -> _T:
        return look_up(name, registry, self._source, f"{self._config.key_path}.{key}")


def plan_of_one_sip(
    name: str, topology: Topology | None = None, ccl: CclConfig | None = None
) -> Plan:
    """The queue table `name` inside a single SIP, for `kernbench.mock.launch(..., queues=plan)`.

    Topology and configuration are by default those of the files that ship with kernbench.
    `ConfigError` with the nearest name if there is no such table.
    """
    ccl, topology = ccl or load_ccl(), topology or load_topology(sips=1)
    group = Group(0, (0,), ccl.resolve_queues(name), topology)
    return InstallPlan(group, ccl.source).of_sip(0)


def _global(direction: str) -> str:
    """The name of a direction between SIPs."""
    return f"global_{direction}"
