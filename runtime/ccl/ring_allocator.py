"""Allocates the receive rings of every queue table in the memories of the PEs.

All ranks make the same process groups in the same order, members or not. So every rank computes the
same addresses, its own and those of its peers, without communication.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from runtime.ccl.config import BufferKind, CclConfig
from runtime.ccl.group import Group
from runtime.ccl.plan import InstallPlan
from runtime.model.topology import Topology


@dataclass
class QueueTableSpec:
    """The queues of one algorithm of a group; `installed` once they are on the PEs of this rank."""

    name: str
    group: Group
    plan: InstallPlan
    installed: bool = False


class RingAllocator:
    """The queue tables of all groups made so far, as computed by rank `rank`."""

    def __init__(self, rank: int, topology: Topology, ccl: CclConfig) -> None:
        self._rank, self._topology, self._ccl = rank, topology, ccl
        self._tables: dict[tuple[tuple[int, ...], str], QueueTableSpec] = {}
        self._reserved_bytes: Counter[tuple[BufferKind, int]] = Counter()

    def tables(
        self, group: str, sips: tuple[int, ...], algorithms: Sequence[str]
    ) -> dict[str, QueueTableSpec]:
        """The table of each algorithm for the group of these SIPs: that of an earlier group of the
        same SIPs, or a new one.
        """
        for algorithm in algorithms:
            if (sips, algorithm) not in self._tables:
                self._tables[sips, algorithm] = self._new(f"{group}/{algorithm}", sips, algorithm)
        return {algorithm: self._tables[sips, algorithm] for algorithm in algorithms}

    def _new(self, name: str, sips: tuple[int, ...], algorithm: str) -> QueueTableSpec:
        rank = sips.index(self._rank) if self._rank in sips else -1
        group = Group(rank, sips, self._ccl.resolve(algorithm), self._topology)
        kind = group.algorithm.buffer_kind
        # All members use one offset, below the rings that any of them has: a sender computes the
        # address of its peer's ring from its own table.
        above_bytes = max(self._reserved_bytes[kind, sip] for sip in sips)
        plan = InstallPlan(group, self._ccl.source, above_bytes)
        for sip in sips:
            self._reserved_bytes[kind, sip] = above_bytes + plan.ring_bytes_a_pe
        return QueueTableSpec(name, group, plan)
