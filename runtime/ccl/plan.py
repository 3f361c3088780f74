"""The install plan: topology + mapper + algorithm -> the queue pairs of every PE of one SIP. Pure, the same on every rank.

A rank knows the addresses of its peers' receive rings without asking, since the plan is a function of the files alone.
"""

from collections.abc import Mapping

from runtime.ccl.config import AlgorithmConfig, CclConfig
from runtime.ccl.directions import OPPOSITE
from runtime.ccl.group import Group
from runtime.ccl.mappers import MAPPERS, CubePe
from runtime.ccl.mappers import Mapping as PeMapping
from runtime.ccl.topologies import TOPOLOGIES
from runtime.hardware.addresses import AddressMap
from runtime.hardware.allocation import ring_offset
from runtime.hardware.topology import Topology
from runtime.places import Place
from runtime.registry import look_up
from runtime.requests import QueuePair

Plan = Mapping[CubePe, tuple[QueuePair, ...]]


def connected_sips(topology: Topology, ccl: CclConfig) -> frozenset[tuple[int, int]]:
    """All (sip, peer sip) that a queue pair of any algorithm of `ccl` may join: where IPCQ traffic starts and ends.

    An algorithm whose topology does not fit the number of SIPs joins none: `init_process_group` refuses it.
    """
    pairs: set[tuple[int, int]] = set()
    for name in ccl.file.algorithms:
        config = ccl.resolve(name)
        group = Group(0, config.ranks(topology.sips), config, topology)
        if group.fits:
            for rank, neighbours in enumerate(_sip_neighbours(group, ccl.source)):
                pairs |= {(rank, peer) for peer in neighbours.values()}
    return frozenset(pairs)


def _sip_neighbours(group: Group, source: str) -> list[dict[str, int]]:
    between_sips = look_up(group.sip_topology, TOPOLOGIES, source, f"algorithms.{group.algorithm.name}.topology")
    return [between_sips(rank, group.grid_w, group.grid_h) for rank in range(group.world_size)]


class InstallPlan:
    """The queue pairs of one group, for any of its SIPs."""

    def __init__(self, group: Group, source: str) -> None:
        self._topology, self._config = group.topology, group.algorithm
        self._addresses = AddressMap(group.topology)
        key = f"algorithms.{self._config.name}"
        self.mapping: PeMapping = look_up(self._config.mapper, MAPPERS, source, f"{key}.mapper")(
            group.topology, group.root_cube
        )
        self._sip_neighbours = _sip_neighbours(group, source)
        self._most_directions = max(
            (len(self._neighbours(Place(sip, *at))) for sip in range(group.world_size) for at in self.mapping.participants),
            default=0,
        )

    @property
    def ring_bytes_a_pe(self) -> int:
        """What the receive rings of one PE take of the memory they lie in; the same for every PE."""
        return self._most_directions * self._config.n_slots * self._config.slot_size

    def way_between(self, sip: int, peer: int) -> str | None:
        """The direction in which PEs with neighbours outside their SIP send from `sip` to `peer`, if there is one.

        Where several directions lead there it is the first by name, so that both ends choose the same queue.
        """
        return min((f"global_{way}" for way, other in self._sip_neighbours[sip].items() if other == peer), default=None)

    def of_sip(self, sip: int) -> Plan:
        """The queue pairs of every PE of a SIP that has any."""
        plan = {at: self._pairs(Place(sip, *at)) for at in self.mapping.participants}
        return {at: pairs for at, pairs in plan.items() if pairs}

    def _pairs(self, place: Place) -> tuple[QueuePair, ...]:
        config = self._config
        return tuple(
            QueuePair(
                direction, peer, self._ring(place, direction), self._ring(peer, OPPOSITE[direction]),
                config.n_slots, config.slot_size, config.ipcq_credit_size_bytes, config.vc_chunk_size,
            )
            for direction, peer in self._neighbours(place).items()
        )  # fmt: skip

    def _neighbours(self, place: Place) -> dict[str, Place]:
        """Direction -> peer, directions sorted."""
        at = (place.cube, place.pe)
        found = {way: Place(place.sip, *peer) for way, peer in self.mapping.local.get(at, {}).items()}
        if at in self.mapping.exchange:
            for way, sip in self._sip_neighbours[place.sip].items():
                found[f"global_{way}"] = Place(sip, *at)
        return dict(sorted(found.items()))

    def _ring(self, place: Place, direction: str) -> int:
        """The physical address of the receive ring of a PE for a direction."""
        index = list(self._neighbours(place)).index(direction)
        return _ring_address(self._topology, self._addresses, self._config, place, self.ring_bytes_a_pe, index)


def _ring_address(
    topology: Topology, addresses: AddressMap, config: AlgorithmConfig, place: Place, nbytes: int, index: int
) -> int:
    offset = ring_offset(topology, config.buffer_kind, place.pe, nbytes) + index * config.n_slots * config.slot_size
    match config.buffer_kind:
        case "tcm":
            return addresses.pe_tcm_addr(*place, offset)
        case "hbm":
            return addresses.pe_hbm_addr(*place, offset)
        case "sram":
            return addresses.cube_sram_addr(place.sip, place.cube, offset)
