"""What is simulated: all-reduces by algorithm, number of ranks and size."""

from collections.abc import Iterator
from dataclasses import dataclass

from kernbench.benches.collective_perf.collective import COLLECTIVES, PerfCase
from kernbench.theory.topology_file import TopologyFile
from runtime.ccl.algorithm_module import algorithms_with
from runtime.ccl.config import CclConfig, parse_ccl
from runtime.ccl.group import Group
from runtime.ccl.plan import InstallPlan
from runtime.core.errors import UsageError
from runtime.model.topology import parse_topology

RANKS = (2, 3, 4, 8)
SMALLEST_BYTES, NEXT_BYTES, STEP = 2, 128, 4
"""One element, then sizes each so many times the one before: in between a call takes the time of its messages alone."""


@dataclass(frozen=True)
class Point:
    """One all-reduce of `nbytes` a rank. The files are given as text."""

    topology: str
    ccl: str
    algorithm: str
    ranks: int
    nbytes: int

    @property
    def case(self) -> PerfCase:
        """The row of `perf` that measures the same."""
        return PerfCase(
            COLLECTIVES["all_reduce"], self.ranks, self.nbytes // SMALLEST_BYTES, "half", "sum", -1
        )

    @property
    def cost(self) -> int:
        """What simulating it costs, roughly: the bytes that links carry, and the chips there are."""
        return self.ranks * (self.nbytes + 50_000)

    def __str__(self) -> str:
        return f"{self.algorithm} {self.ranks} ranks {self.nbytes} B"


def plan_points(topology: str, ccl: str, max_bytes: int) -> tuple[Point, ...]:
    """All points, on rings of the SIPs in a topology file; raises `UsageError` where `max_bytes` leaves no size."""
    if max_bytes < NEXT_BYTES:
        raise UsageError(
            f"--max-bytes {max_bytes}: the sizes are {SMALLEST_BYTES}, {NEXT_BYTES} and so on, times {STEP}"
        )
    file, names = TopologyFile.of(topology), algorithms(parse_ccl(ccl, "ccl.yaml"), topology)
    rings = {ranks: file.on_a_ring(ranks).text for ranks in RANKS}
    return tuple(
        Point(text, ccl, name, ranks, nbytes)
        for ranks, text in rings.items()
        for nbytes in sizes(max_bytes)
        for name in names
    )


def algorithms(ccl: CclConfig, topology: str) -> tuple[str, ...]:
    """Those that combine rank by rank, so that one can stand for the other, in the order of the file."""
    pair = parse_topology(TopologyFile.of(topology).on_a_ring(2).text, "topology.yaml")

    plans = {
        name: InstallPlan(Group(0, (0, 1), ccl.resolve(name), pair), ccl.source)
        for name in algorithms_with("all_reduce", ccl)
    }
    return tuple(name for name, plan in plans.items() if not plan.mapping.local)


def sizes(max_bytes: int) -> Iterator[int]:
    """Bytes of a rank's tensor."""
    yield SMALLEST_BYTES
    nbytes = NEXT_BYTES
    while nbytes <= max_bytes:
        yield nbytes
        nbytes *= STEP
