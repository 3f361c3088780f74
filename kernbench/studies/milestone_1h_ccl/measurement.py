"""Measures one all-reduce of the study, on int32, whose sums are exact (they wrap around)."""

from statistics import median_low

import numpy as np

from kernbench import DPPolicy
from kernbench.studies.all_reduce import run_all_reduce
from kernbench.studies.milestone_1h_ccl.points import CclPoint, elements
from kernbench.studies.milestone_1h_ccl.rows import CclRow
from runtime.core.trace import OpRecord
from runtime.language.value import Array
from runtime.model.topology import parse_topology

SEED = 1
"""Of the data. Times do not depend on it."""


def measure(point: CclPoint) -> CclRow:
    """Simulate one point."""
    sips = point.network.sips
    cubes = _cubes(point)
    shards = [shard(rank, cubes, elements(point.nbytes)) for rank in range(sips)]
    run = run_all_reduce(
        shards,
        combined(shards),
        DPPolicy(cube="row_wise", num_cubes=cubes, num_pes=1),
        algorithm=point.algorithm,
        topology_yaml=point.topology,
        ccl_yaml=point.ccl,
    )
    theory, queue = point.theory, point.queue
    # `parts` describes the kernel of the ring with queues in TCM, no other.
    explained = point.algorithm == "ring" and point.buffer_kind == "tcm"
    return CclRow(
        part=point.part,
        network=point.network,
        algorithm=point.algorithm,
        buffer_kind=point.buffer_kind,
        slots=queue.slots,
        slot_bytes=queue.slot_bytes,
        nbytes=point.nbytes,
        time_ps=run.time_ps,
        skew_ps=run.skew_ps,
        wrong=run.wrong,
        slot_in_ps=_median_ps(run.world.of("pe_ipcq", "arrival")),
        slot_out_ps=_median_ps(run.world.of("pe_dma", "ipcq_recv")),
        link_gbs=float(theory.ring_link.gbs),
        least_ps=theory.least_ps(point.algorithm, point.nbytes),
        alpha_beta_ps=theory.alpha_beta_ps(point.algorithm, point.nbytes),
        parts=theory.parts(point.nbytes) if explained else None,
    )


def shard(rank: int, cubes: int, count: int) -> Array:
    """The tensor of a rank: a row of `count` random int32 for each cube that takes part."""
    rng = np.random.default_rng([SEED, rank, cubes, count])
    limits = np.iinfo(np.int32)
    return rng.integers(limits.min, limits.max, (cubes, count), np.int32, endpoint=True)


def combined(shards: list[Array]) -> Array:
    """The expected content of every row: the sum over ranks and cubes, modulo 2^32."""
    return np.stack(shards).sum(axis=(0, 1), dtype=np.int32)


def _cubes(point: CclPoint) -> int:
    """Cubes that take part: one in the flat ring, all of a SIP in `intercube`."""
    if point.algorithm == "ring":
        return 1
    return parse_topology(point.topology, "topology.yaml", point.network.sips).cubes


def _median_ps(records: list[tuple[int, OpRecord]]) -> int:
    """0 without a record: messages that stay in their slots are not copied."""
    return median_low([record.end_ps - record.start_ps for _, record in records] or [0])
