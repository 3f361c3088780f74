"""Allocates the receive rings of every queue table in the memories of the PEs.

All ranks make the same process groups in the same order, members or not. So every rank computes the
same addresses, its own and those of its peers, without communication.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from runtime.ccl.config import BufferKind, CclConfig
from runtime.ccl.group import Group
from runtime.ccl.orders import Order, best_order
from runtime.ccl.plan import InstallPlan
from runtime.ccl.topologies import TOPOLOGIES, none
from runtime.model.sip_fabric import SipFabric
from runtime.model.topology import Topology


@dataclass
class QueueTableSpec:
    """The queues of one algorithm, or of one key of `queues`, of a group; `installed` once they are
    on the PEs of this rank. `barrier` is the tensor that barriers sum, from the first one on.
    """

    name: str
    group: Group
    plan: InstallPlan
    installed: bool = False
    barrier: object = None


class InstallPlans:
    """The install plans that the ranks of an LP have made.

    Every rank makes the same ones, and what a plan computes for one rank others can use: with many
    ranks that is most of what a rank computes before its first collective.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[tuple[int, ...], str, int], InstallPlan] = {}
        self._orders: dict[tuple[tuple[int, ...], str], Order] = {}

    def order(self, group: Group) -> Order:
        """The SIPs of a group in the order of its algorithm; `group` has them by rank."""
        kind = group.sip_topology
        key = group.sips, kind
        if key not in self._orders:
            neighbours = TOPOLOGIES.get(kind, none)
            grid, fabric = (group.grid_w, group.grid_h), SipFabric(group.topology)
            self._orders[key] = best_order(group.sips, fabric, kind, neighbours, grid)
        return self._orders[key]

    def plan(self, group: Group, source: str, above_bytes: int) -> InstallPlan:
        """The plan of a group, for all of its members; see `InstallPlan`."""
        key = group.sips, group.algorithm.name, above_bytes
        if key not in self._known:
            self._known[key] = InstallPlan(group, source, above_bytes)
        return self._known[key]


class RingAllocator:
    """The queue tables of all groups made so far, as computed by rank `rank`.

    `plans` are those of all ranks with the same configuration files.
    """

    def __init__(self, rank: int, topology: Topology, ccl: CclConfig, plans: InstallPlans) -> None:
        self._rank, self._topology, self._ccl, self._plans = rank, topology, ccl, plans
        self._tables: dict[tuple[tuple[int, ...], str], QueueTableSpec] = {}
        self._reserved_bytes: Counter[tuple[BufferKind, int]] = Counter()

    def tables(
        self, group: str, sips: tuple[int, ...], algorithms: Sequence[str]
    ) -> dict[str, QueueTableSpec]:
        """The table of each name, an algorithm or a key of `queues`, for the group of these SIPs:
        that of an earlier group of the same SIPs, or a new one.
        """
        for algorithm in algorithms:
            if (sips, algorithm) not in self._tables:
                self._tables[sips, algorithm] = self._new(f"{group}/{algorithm}", sips, algorithm)
        return {algorithm: self._tables[sips, algorithm] for algorithm in algorithms}

    def _new(self, name: str, sips: tuple[int, ...], algorithm: str) -> QueueTableSpec:
        config = self._ccl.resolve_queues(algorithm).of_group(len(sips))
        by_rank = Group(-1, sips, config, self._topology)
        order = self._plans.order(by_rank)
        number = order.index(self._rank) if self._rank in order else -1
        group = replace(by_rank, rank=number, sips=order)
        kind = group.algorithm.buffer_kind
        # All members use one offset, below the rings that any of them has: a sender computes the
        # address of its peer's ring from its own table.
        above_bytes = max(self._reserved_bytes[kind, sip] for sip in sips)
        plan = self._plans.plan(group, self._ccl.source, above_bytes)
        for sip in sips:
            self._reserved_bytes[kind, sip] = above_bytes + plan.ring_bytes_a_pe
        return QueueTableSpec(name, group, plan)
