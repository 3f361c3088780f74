"""One point of the sweep: an all-reduce simulated, timed and checked bit by bit."""

from collections.abc import Callable, Sequence

import numpy as np

from kernbench.studies.ccl_algorithms.points import Point
from kernbench.studies.ccl_algorithms.rows import Row
from runtime import DPPolicy, torch
from runtime.core.trace import OpRecord
from runtime.language.value import Array
from runtime.model.topology import parse_topology
from sip_node.local_run import simulate

SEED = 1
"""Of the data. Times do not depend on it."""
EXACT = 2048
"""All integers up to this one are float16 numbers, so that sums of that size are exact in any order."""
KERNEL = "kernel all_reduce"


def measure(point: Point) -> Row:
    """Simulate one point.

    All ranks do the same before and meet nobody. What the host takes to launch is the same for all algorithms and left out. So
    is the barrier of `perf`, which lets ranks go one after the other: some algorithms bear that better than others. A rank with
    more neighbours than another one installs more queues and begins later.
    """
    world = simulate(_program(point), point.ranks, topology=point.topology, ccl=point.ccl)
    time_ps, skew_ps = span([record for _, record in world.of("pe_cpu.collective", KERNEL)])
    wrong = sum(world.returned.values())
    return Row(point.algorithm, point.ranks, point.nbytes, time_ps, skew_ps, wrong)


def span(kernels: Sequence[OpRecord]) -> tuple[int, int]:
    """From the first start of a kernel to the end of the last one, and to the last start, in picoseconds."""
    starts_ps = [kernel.start_ps for kernel in kernels]
    first_ps = min(starts_ps)
    return max(kernel.end_ps for kernel in kernels) - first_ps, max(starts_ps) - first_ps


def _program(point: Point) -> Callable[[int], int]:
    """The rank program; it returns how many elements of the rank are wrong."""
    _, pes = point.case.spread(1, parse_topology(point.topology, "topology.yaml").pes_per_cube)
    given = [numbers(point, rank) for rank in range(point.ranks)]
    right = np.stack(given).sum(axis=0, dtype=np.float16)

    def main(rank: int) -> int:
        torch.ahbm.set_device(rank)
        torch.distributed.init_process_group("ahbm", algorithm=point.algorithm)
        tensor = torch.from_numpy(
            given[rank], dp=DPPolicy(cube="column_wise", pe="column_wise", num_cubes=1, num_pes=pes)
        )
        torch.distributed.all_reduce(tensor)
        return int(np.count_nonzero(tensor.numpy() != right))

    return main


def numbers(point: Point, rank: int) -> Array:
    """What a rank puts in: one row of integers."""
    limit = EXACT // point.ranks
    rng = np.random.default_rng([SEED, rank, point.nbytes])
    return rng.integers(-limit, limit, (1, point.case.count), endpoint=True).astype(np.float16)
