"""The study at validation scale: kernels on rings of PEs, checked against float64."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct

from kernbench import DPPolicy, torch
from kernbench.benches.attention.reference import F16_TOLERANCE, attention
from kernbench.benches.attention.ring_decode import ring_decode
from kernbench.benches.attention.ring_prefill import RankShape, ring_prefill
from kernbench.benches.attention.rings import Ring, cube_square, pe_ring
from kernbench.oracle.theory.topology_file import TopologyFile
from kernbench.simulation import Simulation, simulate
from kernbench.studies.milestone_gqa_llama70b.op_log import (
    AttentionPanel,
    OpLogCounts,
    OpLogSummary,
)
from kernbench.studies.parameter_study import ParameterStudy, TopologyText
from kernbench.studies.study_results import StudyResults, wrong_by
from kernbench.studies.table import RowTable, ns
from runtime.core.config.config_file import default_file, read_text
from runtime.core.dtypes import DType, float16, float32
from runtime.core.errors import UsageError
from runtime.language.value import Array
from runtime.model.topology import parse_topology

F32_TOLERANCE = 2e-6
"""Largest absolute difference of a kernel with float32 operands from dense attention."""


class ValidationConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """The sizes of all panels; the names are those of the file.

    `S_q_prefill` queries and `S_kv_per_rank` keys are those of one rank; a decode has one query.
    """

    S_q_prefill: int = 16
    S_kv_per_rank: int = 16
    h_q: int = 1
    h_kv: int = 1
    d_head: int = 64
    n_ranks_single_user: int = 8
    n_ranks_multi_user: int = 4

    def ranks(self, panel: AttentionPanel) -> int:
        """The ranks of a panel."""
        return self.n_ranks_single_user if panel.is_single_user else self.n_ranks_multi_user


class ValidationRow(Struct, frozen=True, forbid_unknown_fields=True):
    """One panel: the counts of its run in float16, and the checks.

    Errors are the largest absolute differences from float64; `masked_error` (float32) is that with
    a context which leaves a rank without keys, None for prefill. `shifted_is_equal` is whether a
    number added to all scores has left every bit of the result as it was.
    """

    panel: AttentionPanel
    n_ranks: int
    op_log_summary: OpLogSummary
    kernel_ps: int
    f16_error: float
    f32_error: float
    masked_error: float | None
    shifted_is_equal: bool

    @property
    def label(self) -> str:
        """The panel."""
        return self.panel

    @property
    def time_ps(self) -> int:
        """The simulated time of the kernel."""
        return self.kernel_ps

    @property
    def products(self) -> int:
        """The products of the algorithm: two for each block of keys that a rank attends to."""
        return 2 * self.n_ranks * (1 if self.panel.is_decode else self.n_ranks)

    @property
    def faults(self) -> list[str]:
        """Wrong counts and wrong results."""
        counts, faults = self.op_log_summary, list[str]()
        if counts.gemm_count != self.products:
            faults.append(f"{counts.gemm_count} products, {self.products} expected")
        if not counts.ipcq_send_count or counts.ipcq_send_count != counts.ipcq_recv_count:
            faults.append(f"{counts.ipcq_send_count} sends, {counts.ipcq_recv_count} receives")
        # Each rank loads its part of q, k and v, and stores its result.
        if counts.dma_read_count < 3 * self.n_ranks or counts.dma_write_count < self.n_ranks:
            faults.append(f"{counts.dma_read_count} reads, {counts.dma_write_count} writes")
        faults += wrong_by(self.f16_error, F16_TOLERANCE, "float16")
        faults += wrong_by(self.f32_error, F32_TOLERANCE, "float32")
        faults += wrong_by(self.masked_error, F32_TOLERANCE, "masked keys")
        if not self.shifted_is_equal:
            faults.append("a number added to all scores changes the result")
        return faults


class ValidationResults(StudyResults[ValidationRow], frozen=True, forbid_unknown_fields=True):
    """The file at validation scale."""

    validation_scale: bool
    panels: tuple[AttentionPanel, ...]
    config: ValidationConfig


SEED = 1
"""Seed of the tensors; times do not depend on it."""
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


class ValidationStudy(ParameterStudy[ValidationPoint, ValidationRow, ValidationResults]):
    """All four panels with small tensors, on rings of PEs of one SIP."""

    results_name = "gqa/sweep.json"
    noun = "panels"
    results_type = ValidationResults
    table = RowTable[ValidationRow](
        (
            ("<panel", lambda row: row.panel),
            ("ranks", lambda row: str(row.n_ranks)),
            ("products", lambda row: str(row.op_log_summary.gemm_count)),
            ("sends", lambda row: str(row.op_log_summary.ipcq_send_count)),
            ("receives", lambda row: str(row.op_log_summary.ipcq_recv_count)),
            ("reads", lambda row: str(row.op_log_summary.dma_read_count)),
            ("writes", lambda row: str(row.op_log_summary.dma_write_count)),
            ("time\n(ns)", lambda row: ns(row.kernel_ps)),
            ("error\nf16", lambda row: f"{row.f16_error:.1e}"),
            ("error\nf32", lambda row: f"{row.f32_error:.1e}"),
            (
                "error\nmasked",
                lambda row: f"{row.masked_error:.1e}" if row.masked_error is not None else "",
            ),
            ("<shifted\nscores", lambda row: "equal" if row.shifted_is_equal else "DIFFERENT"),
        ),
        group=lambda row: row.panel.is_single_user,
    )

    def points(self, topology: TopologyText) -> Sequence[ValidationPoint]:
        """Raises `UsageError` for a SIP without a ring of 8 PEs or without 2 x 2 cubes."""
        config = ValidationConfig()
        _check_rings(topology, config)
        one_sip = TopologyFile.of(topology.text).on_a_ring(1).text
        queues = read_text(default_file("ccl.yaml"))
        return [
            ValidationPoint(topology=one_sip, ccl=queues, panel=panel, config=config)
            for panel in AttentionPanel
        ]

    def measure(self, point: ValidationPoint) -> ValidationRow:
        """Simulate one panel: in float16 and float32, with masked keys, with shifted scores."""
        tensors = random_tensors(point)
        half, single = _run(point, tensors, float16), _run(point, tensors, float32)
        masked_error = None
        if point.panel.is_decode:
            # All keys of the last rank are masked, and all but one of the rank before it.
            context = point.keys - 2 * point.config.S_kv_per_rank + 1
            masked_error = _run(point, tensors, float32, context).error(tensors, float32, context)
        plain, shifted = (
            _run(point, each, float32)
            for each in (exact_tensors(point), exact_tensors(point, SHIFT))
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

    def kept(self, topology: TopologyText) -> Mapping[str, Any]:  # noqa: ARG002 - of all topologies
        """The sizes of all panels."""
        return {
            "validation_scale": True,
            "panels": tuple(AttentionPanel),
            "config": ValidationConfig(),
        }

    def problem(self, results: ValidationResults) -> str:
        """A row for every panel."""
        if [row.panel for row in results.rows] == list(AttentionPanel):
            return ""
        return f"there must be one row for each of {', '.join(AttentionPanel)}"

    def passed(self, results: ValidationResults) -> str:
        """Summary of the checks that passed."""
        return (
            f"{len(results.rows)} panels: right against float64 in float16 and float32, with "
            "masked ranks and with shifted scores; all counts as expected"
        )


def _check_rings(topology: TopologyText, config: ValidationConfig) -> None:
    parsed = topology.parsed
    mesh, ranks = parsed.sip.cube_mesh, config.n_ranks_single_user
    if parsed.pes_per_cube != ranks or mesh.w < 2 or mesh.h < 2:
        raise UsageError(
            f"--topology {topology.source}: the validation scale needs {ranks} PEs a cube and at "
            f"least 2 x 2 cubes; there are {parsed.pes_per_cube} PEs and {mesh.w} x {mesh.h} cubes"
        )
