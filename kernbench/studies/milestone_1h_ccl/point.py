"""One point of the sweep: an all-reduce simulated, timed and checked bit by bit."""

from collections.abc import Callable
from statistics import median_low

import numpy as np

from kernbench.studies.milestone_1h_ccl.points import Point, elements
from kernbench.studies.milestone_1h_ccl.rows import Row
from runtime import DPPolicy, torch
from runtime.core.trace import OpRecord
from runtime.language.value import Array
from runtime.model.topology import parse_topology
from sip_node.local_run import simulate

SEED = 1
"""Of the data. Times do not depend on it."""
KERNEL = "kernel all_reduce"


def measure(point: Point) -> Row:
    """Simulate one point.

    Every rank does the same before the all-reduce and meets nobody, so its kernels start in the same picosecond on all SIPs;
    its time is from there to the end of the last kernel. What the host needs to launch it is not in it.
    """
    world = simulate(_program(point), point.network.sips, topology=point.topology, ccl=point.ccl)
    kernels = [record for _, record in world.of("pe_cpu.collective", KERNEL)]
    starts_ps = [record.start_ps for record in kernels]
    theory, queue = point.theory, point.queue
    by_kernel = point.algorithm == "ring" and point.buffer_kind == "tcm"
    return Row(
        part=point.part,
        network=point.network,
        algorithm=point.algorithm,
        buffer_kind=point.buffer_kind,
        slots=queue.slots,
        slot_bytes=queue.slot_bytes,
        nbytes=point.nbytes,
        time_ps=max(record.end_ps for record in kernels) - min(starts_ps),
        skew_ps=max(starts_ps) - min(starts_ps),
        wrong=sum(world.returned.values()),
        slot_in_ps=_median_ps(world.of("pe_ipcq", "arrival")),
        slot_out_ps=_median_ps(world.of("pe_dma", "ipcq_recv")),
        link_gbs=float(theory.ring_link.gbs),
        least_ps=theory.least_ps(point.algorithm, point.nbytes),
        alpha_beta_ps=theory.alpha_beta_ps(point.algorithm, point.nbytes),
        parts=theory.parts(point.nbytes, queue) if by_kernel else None,
    )


def _median_ps(records: list[tuple[int, OpRecord]]) -> int:
    return median_low(record.end_ps - record.start_ps for _, record in records)


def _program(point: Point) -> Callable[[int], int]:
    """The rank program; it returns how many elements of the rank are wrong."""
    sips = point.network.sips
    cubes = (
        1
        if point.algorithm == "ring"
        else parse_topology(point.topology, "topology.yaml", sips).cubes
    )
    given = [numbers(rank, cubes, elements(point.nbytes)) for rank in range(sips)]
    right = combined(given)

    def main(rank: int) -> int:
        torch.ahbm.set_device(rank)
        torch.distributed.init_process_group("ahbm", algorithm=point.algorithm)
        tensor = torch.from_numpy(
            given[rank], dp=DPPolicy(cube="row_wise", num_cubes=cubes, num_pes=1)
        )
        torch.distributed.all_reduce(tensor)
        return int(np.count_nonzero(tensor.numpy() != right))

    return main


def numbers(rank: int, cubes: int, count: int) -> Array:
    """What a rank puts in, a row for each cube that takes part: any int32."""
    rng = np.random.default_rng([SEED, rank, cubes, count])
    limits = np.iinfo(np.int32)
    return rng.integers(limits.min, limits.max, (cubes, count), np.int32, endpoint=True)


def combined(given: list[Array]) -> Array:
    """What every row must be: the sum over ranks, and over cubes where several take part. Sums wrap round."""
    return np.stack(given).sum(axis=(0, 1), dtype=np.int32)
