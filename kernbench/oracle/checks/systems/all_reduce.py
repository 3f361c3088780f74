"""The run of groups f and g: an all-reduce of integers over two SIPs."""

import numpy as np

from kernbench import DPPolicy, torch
from kernbench.simulation import Simulation, simulate
from runtime.core import dtypes

SIPS = 2
ELEMENTS = 512


def all_reduce(text: str, ccl: str | None = None) -> Simulation:
    """Run it on the topology file `text`; each rank returns the number of its wrong sums.

    The elements are different for every rank, cube and index.
    """

    def program(rank: int) -> int:
        torch.distributed.init_process_group("ahbm", algorithm="intercube")
        cubes = torch.ahbm.cube_count()
        tensor = torch.empty(
            cubes, ELEMENTS, dtype=dtypes.int32, dp=DPPolicy(cube="row_wise", num_pes=1)
        )
        tensor.copy_(_numbers(rank, cubes))
        torch.distributed.all_reduce(tensor)
        right = np.sum([_numbers(other, cubes).sum(axis=0) for other in range(SIPS)], axis=0)
        return int(np.count_nonzero(tensor.numpy() != right))

    return simulate(program, SIPS, topology=text, ccl=ccl)


def _numbers(rank: int, cubes: int) -> np.ndarray:
    index = np.arange(cubes * ELEMENTS, dtype=np.int32).reshape(cubes, ELEMENTS)
    return index * 7919 % 10_007 + 100_000 * rank
