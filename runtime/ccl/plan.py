"""The install plan: topology + mapper + algorithm -> the queue pairs of every PE of one SIP. Pure,
the same on every rank.

A rank knows the addresses of its peers' receive rings without asking, since the plan is a function
of the files and of the groups that all ranks have made.
"""

from collections.abc import Mapping
from typing import TypeVar

from runtime.ccl.checked_functions import CheckedFunctions
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

Plan = Mapping[CubePe, tuple[QueuePair, ...]]
_T = TypeVar("_T")


class InstallPlan:
    """The queue table of one algorithm of one group, for any of its SIPs.

    `ring_bytes_a_pe` is what the receive rings of one PE take of the memory they lie in; the same
    for every PE. `above_bytes` of each PE lie above them and belong to other tables.
    """

    def __init__(self, group: Group, source: str, above_bytes: int = 0) -> None:
        self._group, self._config, self._source = group, group.algorithm, source
        self._addresses, parts = (
            AddressMap(group.topology),
            CheckedFunctions(source, self._config.name),
        )
        mapper = self._look_up("mapper", self._config.mapper, MAPPERS)
        self.mapping: PeMapping = parts.mapping(mapper, group.topology, group.root_cube)
        between_sips = self._look_up("topology", group.sip_topology, TOPOLOGIES)
        self._between_ranks = parts.neighbours(
            between_sips, group.world_size, (group.grid_w, group.grid_h)
        )
        one_way = RECEIVE_ONLY.get(group.sip_topology, frozenset())
        self._receive_only = frozenset(map(_outside, one_way))
        self._send_only = frozenset(OPPOSITE[way] for way in self._receive_only)
        self._neighbours: dict[PeCoordinates, dict[str, PeCoordinates]] = {}
        self.ring_bytes_a_pe, self.above_bytes = (
            self._most_rings() * self._config.ring_bytes,
            above_bytes,
        )

    def of_sip(self, sip: int) -> Plan:
        """The queue pairs of every PE of a SIP that has any; `ConfigError` if the rings of a PE do
        not fit.
        """
        self._check_room()
        plan = {at: self._pairs(PeCoordinates(sip, *at)) for at in self.mapping.participants}
        return {at: pairs for at, pairs in plan.items() if pairs}

    def _most_rings(self) -> int:
        outside = max(
            (len(set(map(_outside, ways)) - self._send_only) for ways in self._between_ranks),
            default=0,
        )
        return max(
            (
                len(self.mapping.local.get(at, {})) + outside * (at in self.mapping.exchange)
                for at in self.mapping.participants
            ),
            default=0,
        )

    def _check_room(self) -> None:
        config, topology = self._config, self._group.topology
        last_pe = topology.pes_per_cube - 1
        if (
            ring_offset(
                topology, config.buffer_kind, last_pe, self.ring_bytes_a_pe, self.above_bytes
            )
            >= 0
        ):
            return
        rings = f"{self._most_rings()} receive rings a PE of {config.n_slots} slots of {config.slot_size:,} bytes"
        others = (
            f" below {self.above_bytes:,} bytes a PE of other queues" if self.above_bytes else ""
        )
        room = (
            f"the {allocatable_bytes(topology, config.buffer_kind):,} bytes of {config.buffer_kind}"
        )
        shared = (
            f", which {topology.pes_per_cube} PEs share" if config.buffer_kind == "sram" else ""
        )
        advice = "use smaller n_slots or slot_size, or another buffer_kind"
        raise ConfigError(
            self._source,
            f"algorithms.{config.name}",
            f"{rings}{others} do not fit {room}{shared}: {advice}",
        )

    def _pairs(self, place: PeCoordinates) -> tuple[QueuePair, ...]:
        return tuple(
            self._pair(place, direction, peer) for direction, peer in self._joined(place).items()
        )

    def _pair(self, place: PeCoordinates, direction: str, peer: PeCoordinates) -> QueuePair:
        config, back = self._config, self._way_back(place, direction, peer)
        return QueuePair(
            direction,
            peer,
            back,
            self._ring(place, direction),
            self._ring(peer, back),
            config.n_slots,
            config.slot_size,
            config.ipcq_credit_size_bytes,
            config.vc_chunk_size,
        )

    def _way_back(self, place: PeCoordinates, direction: str, peer: PeCoordinates) -> str:
        """Points of the compass pair with their opposites, any other direction with the one that
        leads back.
        """
        opposite = OPPOSITE.get(direction)
        back = [way for way, other in self._joined(peer).items() if other == place]
        if opposite in back:
            return opposite
        if opposite is None and len(back) == 1:
            return back[0]
        problem = f"{direction} leads from {place} to {peer}, from where {opposite or 'one direction'} has to lead back"
        key_path = f"algorithms.{self._config.name}.topology"
        raise ConfigError(
            self._source, key_path, f"{problem}; there are {', '.join(back) or 'none'}"
        )

    def _joined(self, place: PeCoordinates) -> dict[str, PeCoordinates]:
        """Direction -> peer, directions sorted."""
        known = self._neighbours.get(place)
        if known is None:
            at, sips = (place.cube, place.pe), self._group.sips
            found = {
                way: PeCoordinates(place.sip, *peer)
                for way, peer in self.mapping.local.get(at, {}).items()
            }
            if at in self.mapping.exchange:
                for way, rank in self._between_ranks[sips.index(place.sip)].items():
                    found[_outside(way)] = PeCoordinates(sips[rank], *at)
            known = self._neighbours[place] = dict(sorted(found.items()))
        return known

    def _ring(self, place: PeCoordinates, direction: str) -> int | None:
        """The physical address of the receive ring of a PE for a direction, if it receives from
        there.
        """
        if direction in self._send_only:
            return None
        receiving = [way for way in self._joined(place) if way not in self._send_only]
        config, addresses = self._config, self._addresses
        top = ring_offset(
            self._group.topology,
            config.buffer_kind,
            place.pe,
            self.ring_bytes_a_pe,
            self.above_bytes,
        )
        offset = top + receiving.index(direction) * config.ring_bytes
        match config.buffer_kind:
            case "tcm":
                return addresses.pe_tcm_addr(*place, offset)
            case "hbm":
                return addresses.pe_hbm_addr(*place, offset)
            case "sram":
                return addresses.cube_sram_addr(place.sip, place.cube, offset)

    def _look_up(self, part: str, name: str, registry: Mapping[str, _T]) -> _T:
        return look_up(name, registry, self._source, f"algorithms.{self._config.name}.{part}")


def _outside(way: str) -> str:
    """The name of a direction between SIPs."""
    return f"global_{way}"
