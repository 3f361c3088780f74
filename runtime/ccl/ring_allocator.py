"""Which part of each memory the receive rings of every queue table take.

All ranks make the same process groups in the same order, members or not, so that all of them
compute the same addresses without asking each other.
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
    """The queues of one algorithm of a group, and whether they are on the PEs of this rank."""

    name: str
    group: Group
    plan: InstallPlan
    installed: bool = False


class RingAllocator:
    """The tables of all groups that the ranks have made so far, as rank `rank` sees them."""

    def __init__(self, rank: int, topology: Topology, ccl: CclConfig) -> None:
        self._rank, self._topology, self._ccl = rank, topology, ccl
        self._tables: dict[tuple[tuple[int, ...], str], QueueTableSpec] = {}
        self._taken: Counter[tuple[BufferKind, int]] = Counter()

    def tables(
        self, group: str, sips: tuple[int, ...], algorithms: Sequence[str]
    ) -> dict[str, QueueTableSpec]:
        """The table of each algorithm for the group of these SIPs: those of an earlier group of the
        same SIPs, or new ones.
        """
        for algorithm in algorithms:
            if (sips, algorithm) not in self._tables:
                self._tables[sips, algorithm] = self._new(f"{group}/{algorithm}", sips, algorithm)
        return {algorithm: self._tables[sips, algorithm] for algorithm in algorithms}

    def _new(self, name: str, sips: tuple[int, ...], algorithm: str) -> QueueTableSpec:
        rank = sips.index(self._rank) if self._rank in sips else -1
        group = Group(rank, sips, self._ccl.resolve(algorithm), self._topology)
        kind = group.algorithm.buffer_kind
        # One offset for all members: below whatever rings any of them has.
        plan = InstallPlan(group, self._ccl.source, max(self._taken[kind, sip] for sip in sips))
        for sip in sips:
            self._taken[kind, sip] = plan.above_bytes + plan.ring_bytes_a_pe
        return QueueTableSpec(name, group, plan)
