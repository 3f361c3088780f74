"""Simulates one all-reduce on real chips, times its kernels and checks every sum bit by bit."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from kernbench import DPPolicy, torch
from kernbench.simulation import Simulation, simulate
from runtime.core.trace import OpRecord
from runtime.language.value import Array

KERNEL = "kernel all_reduce"
"""Name in the op log of the kernels of an all-reduce."""


class AllReduceRun(NamedTuple):
    """`time_ps` and `skew_ps` as `kernel_span` defines them, and the wrong elements of all ranks.

    `world` is the finished simulation, for further measurements in its op log.
    """

    time_ps: int
    skew_ps: int
    wrong: int
    world: Simulation


def run_all_reduce(
    shards: Sequence[Array],
    expected: Array,
    placement: DPPolicy,
    *,
    algorithm: str,
    topology_yaml: str,
    ccl_yaml: str,
) -> AllReduceRun:
    """All-reduce `shards[rank]` over all ranks, on one SIP a rank; every rank must get `expected`.

    The time the host takes to launch is the same for all algorithms and is not counted. There is no
    barrier before the all-reduce: ranks would leave it one after the other, and some algorithms
    tolerate that better than others. Without it the ranks do not meet before the all-reduce.
    """
    # All ranks in this process: worker processes simulate different points.
    program = _program(shards, expected, placement, algorithm)
    world = simulate(program, len(shards), topology=topology_yaml, ccl=ccl_yaml)
    kernels = [record for _, record in world.of("pe_cpu.collective", KERNEL)]
    time_ps, skew_ps = kernel_span(kernels)
    return AllReduceRun(time_ps, skew_ps, sum(world.returned.values()), world)


def kernel_span(kernels: Sequence[OpRecord]) -> tuple[int, int]:
    """(time, skew) in ps: first start to last end of the kernels, first start to last start.

    A rank with more neighbours than another installs more queues, so its kernel starts later.
    """
    starts_ps = [kernel.start_ps for kernel in kernels]
    first_ps = min(starts_ps)
    return max(kernel.end_ps for kernel in kernels) - first_ps, max(starts_ps) - first_ps


def _program(
    shards: Sequence[Array], expected: Array, placement: DPPolicy, algorithm: str
) -> Callable[[int], int]:
    """The rank program; it returns the number of wrong elements of the rank."""

    def main(rank: int) -> int:
        torch.ahbm.set_device(rank)
        torch.distributed.init_process_group("ahbm", algorithm=algorithm)
        tensor = torch.from_numpy(shards[rank], dp=placement)
        torch.distributed.all_reduce(tensor)
        # `numpy` waits for the collective and reads all shards back.
        return int(np.count_nonzero(tensor.numpy() != expected))

    return main
