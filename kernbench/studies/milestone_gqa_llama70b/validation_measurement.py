"""Measures one panel at validation scale: kernels on a ring of PEs, checked against float64."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from kernbench import DPPolicy, torch
from kernbench.benches.attention.reference import attention
from kernbench.benches.attention.ring_decode import ring_decode
from kernbench.benches.attention.ring_prefill import RankShape, ring_prefill
from kernbench.benches.attention.rings import Ring, cube_square, pe_ring
from kernbench.simulation import Simulation, simulate
from kernbench.studies.milestone_gqa_llama70b.op_log import OpLogCounts
from kernbench.studies.milestone_gqa_llama70b.panels import AttentionPanel
from kernbench.studies.milestone_gqa_llama70b.validation_rows import ValidationConfig, ValidationRow
from runtime.core.dtypes import DType, float16, float32
from runtime.language.value import Array
from runtime.model.topology import parse_topology

SEED = 1
"""Of the tensors. Times do not depend on them."""
SHIFT = 1000
"""A number that is added to all scores."""


class AttentionTensors(NamedTuple):
    """q (queries, depth), k and v (keys, depth) of all ranks of one panel."""

    q: Array
    k: Array
    v: Array


@dataclass(frozen=True)
class ValidationPoint:
    """One panel on the SIP of a topology file, given as text, with the text of the CCL file."""

    topology: str
    ccl: str
    panel: AttentionPanel
    config: ValidationConfig

    @property
    def cost(self) -> int:
        """The steps of all ranks."""
        ranks = self.config.ranks(self.panel)
        return ranks if self.panel.is_decode else ranks * ranks

    @property
    def keys(self) -> int:
        """The keys of all ranks."""
        return self.config.ranks(self.panel) * self.config.S_kv_per_rank

    def __str__(self) -> str:
        return str(self.panel)


def measure(point: ValidationPoint) -> ValidationRow:
    """Simulate one panel: in float16 and float32, with masked keys, with shifted scores."""
    tensors = random_tensors(point)
    half, single = _run(point, tensors, float16), _run(point, tensors, float32)
    masked_error = None
    if point.panel.is_decode:
        # All keys of the last rank are masked, and all but one of the rank before it.
        context = point.keys - 2 * point.config.S_kv_per_rank + 1
        masked_error = _run(point, tensors, float32, context).error(tensors, float32, context)
    plain, shifted = (
        _run(point, each, float32) for each in (exact_tensors(point), exact_tensors(point, SHIFT))
    )
    counts = OpLogCounts()
    counts.add(0, half.world.records[0])
    return ValidationRow(
        panel=point.panel,
        n_ranks=point.config.ranks(point.panel),
        op_log_summary=counts.summary(),
        kernel_ps=half.kernel_ps,
        f16_error=half.error(tensors, float16),
        f32_error=single.error(tensors, float32),
        masked_error=masked_error,
        shifted_is_equal=plain.result.tobytes() == shifted.result.tobytes(),
    )


def random_tensors(point: ValidationPoint) -> AttentionTensors:
    """Uniform in [-1, 1), the same in every process."""
    rng = np.random.default_rng([SEED, list(AttentionPanel).index(point.panel)])
    return AttentionTensors(*(rng.uniform(-1, 1, shape) for shape in _shapes(point)))


def exact_tensors(point: ValidationPoint, shift: int = 0) -> AttentionTensors:
    """Tensors whose scores are exact in float32, also when `shift` has been added to each of them.

    Elements of q and k are multiples of 1/4, so scores are multiples of 1/128 (depth 64). The first
    column of q times that of k adds `shift` to every score.
    """
    rng = np.random.default_rng(SEED)
    q, k, v = (rng.integers(-4, 5, shape) / 4 for shape in _shapes(point))
    q[:, 0], k[:, 0] = shift / 100 * point.config.d_head**0.5, 100
    return AttentionTensors(q, k, v)


class _PanelRun(NamedTuple):
    """One simulation of a panel."""

    world: Simulation
    result: Array
    kernel_ps: int

    def error(self, tensors: AttentionTensors, dtype: DType, context: int | None = None) -> float:
        """The largest difference from dense attention in float64 on the rounded tensors."""
        q, k, v = (each.astype(dtype.numpy) for each in tensors)
        exact = attention(q, k[:context], v[:context])
        return float(np.abs(self.result.astype(np.float64) - exact).max())


def _run(
    point: ValidationPoint, tensors: AttentionTensors, dtype: DType, context: int | None = None
) -> _PanelRun:
    world = simulate(
        _program(point, tensors, dtype, point.keys if context is None else context),
        1,
        topology=point.topology,
        ccl=point.ccl,
    )
    return _PanelRun(world, *world.returned[0])


def _program(
    point: ValidationPoint, tensors: AttentionTensors, dtype: DType, context: int
) -> Callable[[int], tuple[Array, int]]:
    """The rank program; it returns the result, and the simulated time of the kernel."""
    ring, queues, split, copied = _placed(point)
    decodes, config = point.panel.is_decode, point.config

    def main(rank: int) -> tuple[Array, int]:
        torch.ahbm.set_device(rank)
        torch.distributed.init_process_group("ahbm")
        q, k, v = (
            torch.from_numpy(each.astype(dtype.numpy), dp=placement)
            for each, placement in zip(
                tensors, (copied if decodes else split, split, split), strict=True
            )
        )
        # Every rank of a decode has the whole result, a row of `out`.
        rows = len(ring.ranks) if decodes else len(tensors.q)
        out = torch.empty(rows, config.d_head, dtype=dtype, dp=split)
        shape = RankShape(1 if decodes else config.S_q_prefill, config.S_kv_per_rank, config.d_head)
        arguments = (q, k, v, out, shape, ring)
        launched = (
            torch.launch("ring_decode", ring_decode, *arguments, context, queues=queues)
            if decodes
            else torch.launch("ring_prefill", ring_prefill, *arguments, queues=queues)
        )
        return out.numpy(), launched.pe_exec_ps

    return main


def _placed(point: ValidationPoint) -> tuple[Ring, str, DPPolicy, DPPolicy]:
    """The ring, its queues, and the placements of split and of copied tensors."""
    if point.panel.is_single_user:
        ring = pe_ring(point.config.n_ranks_single_user)
        return ring, "pe_ring", DPPolicy(num_cubes=1, pe="row_wise"), DPPolicy(num_cubes=1)
    ring = cube_square(parse_topology(point.topology, "topology.yaml", 1).sip.cube_mesh.w)
    cubes = tuple(cube for cube, _ in ring.ranks)
    split = DPPolicy(cube="row_wise", cubes=cubes, num_pes=1)
    return ring, "cube_mesh", split, DPPolicy(cubes=cubes, num_pes=1)


def _shapes(point: ValidationPoint) -> tuple[tuple[int, int], ...]:
    ranks, config = point.config.ranks(point.panel), point.config
    queries = 1 if point.panel.is_decode else ranks * config.S_q_prefill
    return (queries, config.d_head), (point.keys, config.d_head), (point.keys, config.d_head)
