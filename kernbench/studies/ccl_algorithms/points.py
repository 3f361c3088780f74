"""The points of the study: all-reduces by algorithm, number of ranks and size."""

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
"""One element, then each size `STEP` times the previous; below 128 bytes latency alone counts."""


@dataclass(frozen=True)
class AlgorithmPoint:
    """One all-reduce of `nbytes` a rank, with the text of both configuration files."""

    topology: str
    ccl: str
    algorithm: str
    ranks: int
    nbytes: int

    @property
    def case(self) -> PerfCase:
        """The same call as a case of `kernbench perf`."""
        return PerfCase(
            collective=COLLECTIVES["all_reduce"],
            ranks=self.ranks,
            count=self.nbytes // SMALLEST_BYTES,
            dtype_name="half",
            op="sum",
            root=-1,
        )

    @property
    def cost(self) -> int:
        """Events grow with the bytes on the links, and with the chips that are built."""
        # Building a chip takes about as long as the events of 50 kB.
        return self.ranks * (self.nbytes + 50_000)

    def __str__(self) -> str:
        return f"{self.algorithm} {self.ranks} ranks {self.nbytes} B"


def plan_points(topology: str, ccl: str, max_bytes: int) -> tuple[AlgorithmPoint, ...]:
    """All points, on rings of the SIPs of a topology file.

    Raises `UsageError` if `max_bytes` is below the second size.
    """
    if max_bytes < NEXT_BYTES:
        raise UsageError(
            f"--max-bytes {max_bytes}: "
            f"the sizes are {SMALLEST_BYTES}, {NEXT_BYTES} and so on, times {STEP}"
        )
    file, names = TopologyFile.of(topology), algorithms(parse_ccl(ccl, "ccl.yaml"), topology)
    # Rendering a file takes milliseconds: once for each ring, not for each point.
    rings = {ranks: file.on_a_ring(ranks).text for ranks in RANKS}
    return tuple(
        AlgorithmPoint(topology=text, ccl=ccl, algorithm=name, ranks=ranks, nbytes=nbytes)
        for ranks, text in rings.items()
        for nbytes in sizes(max_bytes)
        for name in names
    )


def algorithms(ccl: CclConfig, topology: str) -> tuple[str, ...]:
    """The interchangeable algorithms, in the order of `ccl.yaml`.

    An algorithm with a local phase sums over the cubes of a SIP too: its result is another one, so
    the selection by size cannot replace a flat algorithm with it.
    """
    # Whether there is a local phase depends on the mapper of the algorithm; two ranks show it.
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
