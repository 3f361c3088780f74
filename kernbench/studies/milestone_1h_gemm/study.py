"""The study of matrix products: what it measures, keeps and shows.

A product is simulated on one PE; its result is checked, its time split into stages.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernbench import torch
from kernbench.benches.gemm_single_pe import gemm
from kernbench.benches.products import BenchProduct
from kernbench.explain.why.intervals import length_ps
from kernbench.simulation import Simulation, simulate
from kernbench.studies.catalogue import GemmFlags
from kernbench.studies.milestone_1h_gemm.rows import (
    GemmPoint,
    GemmResults,
    GemmRow,
    GemmStalls,
    StageBusy,
    StageRecords,
    plan_points,
)
from kernbench.studies.milestone_1h_gemm.theory import (
    DTYPE,
    GemmHardware,
    ProductShape,
    Staging,
    bounds,
    padding_utilisation,
    parse_shapes,
)
from kernbench.studies.parameter_study import ParameterStudy, TopologyText
from kernbench.studies.table import RowTable, ns
from runtime.core.trace import OpRecord
from runtime.language.value import Array
from runtime.model.placement import ONE_PE


@dataclass(frozen=True)
class GemmOutcome:
    """The result of one product, and the simulated time of its kernel."""

    result: Array
    kernel_ps: int


def product(a: Array, b: Array, staging: Staging) -> Callable[[int], GemmOutcome]:
    """The rank program: copies operands to HBM, runs one kernel on one PE, reads the result."""
    loads = staging.loads_a, staging.loads_b
    shape = BenchProduct(a.shape[0], a.shape[1], b.shape[1], DTYPE, loads)

    def main(rank: int) -> GemmOutcome:
        torch.ahbm.set_device(rank)
        of_a, of_b, of_out = shape.layouts()
        left = torch.from_numpy(a, dp=ONE_PE, layout=of_a)
        right = torch.from_numpy(b, dp=ONE_PE, layout=of_b)
        out = torch.empty(shape.m, shape.n, dtype=DTYPE, dp=ONE_PE, layout=of_out)
        launched = torch.launch("gemm", gemm, left, right, out, None, shape)
        return GemmOutcome(out.numpy(), launched.pe_exec_ps)

    return main


SEED = 1
"""Seed of the operands; times do not depend on it."""
_STAGES = {
    ("pe_dma", "load"): "dma_in",
    ("pe_fetch_store", "fetch"): "fetch",
    ("pe_gemm", "gemm"): "gemm",
    ("pe_fetch_store", "store"): "store",
    ("pe_dma", "store"): "dma_out",
}
"""The stages by engine and name of their records."""


def operands(shape: ProductShape) -> tuple[Array, Array]:
    """A and B of a shape: uniform in [-1, 1), the same in every process."""
    rng = np.random.default_rng([SEED, *shape])
    a, b = rng.uniform(-1, 1, (shape.m, shape.k)), rng.uniform(-1, 1, (shape.k, shape.n))
    return a.astype(DTYPE.numpy), b.astype(DTYPE.numpy)


def rounding_error(a: Array, b: Array, result: Array, tile_k: int) -> float:
    """The largest difference from the product in float64, as a share of what rounding allows.

    Allowed are half a unit in the last place of the result's type, and one of float32 for every
    step added to the accumulator, whose magnitude is at most |a| @ |b| (N. Higham, "Accuracy and
    Stability of Numerical Algorithms", 2nd ed., section 3.1).
    """
    exact = a.astype(np.float64) @ b.astype(np.float64)
    steps = -(-a.shape[1] // tile_k)
    magnitude = np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64)
    kind = np.finfo(result.dtype)
    inner = steps * np.finfo(np.float32).eps * magnitude
    # The smallest subnormal keeps the allowance above zero for results that underflow.
    allowed = inner + kind.eps / 2 * (np.abs(exact) + inner) + kind.smallest_subnormal
    return float((np.abs(result.astype(np.float64) - exact) / allowed).max())


class StageLog(dict[str, list[OpRecord]]):
    """The records of the PE that computes, by pipeline stage: the fields of `StageRecords`."""

    @classmethod
    def of(cls, records: Iterable[OpRecord]) -> "StageLog":
        """Sort the records of an op log; records of other engines are left out."""
        log = cls({stage: [] for stage in _STAGES.values()})
        for record in records:
            stage = _STAGES.get((record.engine, record.name))
            if stage:
                log[stage].append(record)
        return log

    @property
    def busy(self) -> StageBusy:
        """Busy time of each stage."""
        return StageBusy(**{f"{stage}_ps": busy_ps(records) for stage, records in self.items()})

    @property
    def counts(self) -> StageRecords:
        """Number of records of each stage."""
        return StageRecords(**{stage: len(records) for stage, records in self.items()})

    def load_ps(self, loads: int) -> int:
        """The time from the start of the first to the end of the last of the kernel's own loads."""
        # The kernel loads operands before it starts the product, so its loads are the first.
        own = sorted(self["dma_in"], key=lambda record: record.start_ps)[:loads]
        return own[-1].end_ps - own[0].start_ps if own else 0


def busy_ps(records: Iterable[OpRecord]) -> int:
    """Length of the union of the operations' intervals."""
    times = [(record.start_ps, record.end_ps) for record in records]
    begins, ends = np.array(times, np.int64).reshape(-1, 2).T
    return length_ps((begins, ends))


def _stalls(world: Simulation) -> GemmStalls:
    counters = world.done.sips[0].counters
    return GemmStalls(
        **{f"{each}_ps": counters[f"gemm_stall_{each}_ps"] for each in ("dma", "fetch", "store")}
    )


def longest_stall(row: GemmRow) -> str:
    """The longest stall of the GEMM engine, as a share of the time, and what it waits for."""
    stalls = {"dma": row.stalls.dma_ps, "fetch": row.stalls.fetch_ps, "store": row.stalls.store_ps}
    reason = max(stalls, key=stalls.__getitem__)
    return f"{100 * stalls[reason] / row.kernel_ps:4.1f} {reason}" if stalls[reason] else ""


class GemmStudy(ParameterStudy[GemmPoint, GemmRow, GemmResults]):
    """Every one of `shapes`, written as MxKxN,MxKxN,..., in every staging of its operands."""

    results_name = "gemm_sweep.json"
    noun = "products"
    results_type = GemmResults
    figures_module = "kernbench.studies.milestone_1h_gemm.figures"
    table = RowTable[GemmRow](
        (
            ("<shape\nM x K x N", lambda row: str(row.shape)),
            ("<staging\nA_B", lambda row: row.staging),
            ("steps", lambda row: f"{row.steps:,}"),
            ("time\n(ns)", lambda row: ns(row.kernel_ps)),
            ("loading\n(ns)", lambda row: ns(row.load_ps) if row.staging.loads else ""),
            ("bound\n(ns)", lambda row: ns(row.theory.bound_ps)),
            ("<bound\nby", lambda row: row.theory.binds),
            ("time /\nbound", lambda row: f"{row.ratio:.3f}"),
            ("of peak\n(%)", lambda row: f"{100 * row.utilisation:.1f}"),
            ("product\n(%)", lambda row: f"{100 * row.product_utilisation:.1f}"),
            ("limit\n(%)", lambda row: f"{100 * row.padding_utilisation:.1f}"),
            ("<stalled\n(%) by", longest_stall),
            # Not red alone: colours are missing in a file or a pipe.
            (
                "<flags",
                lambda row: ", ".join(
                    ["under tile"] * row.under_tile + ["FAULT"] * bool(row.faults)
                ),
            ),
        ),
        group=lambda row: row.shape,
    )
    flags: GemmFlags

    def points(self, topology: TopologyText) -> Sequence[GemmPoint]:
        """Raises `UsageError` for wrong shapes, and for operands that do not fit in scratch."""
        return plan_points(topology, parse_shapes(self.flags.shapes))

    def measure(self, point: GemmPoint) -> GemmRow:
        """Simulate one point."""
        hardware, shape, staging = point.hardware, point.shape, point.staging
        a, b = operands(shape)
        # One SIP in this process: the study distributes products, not SIPs, over processes.
        world = simulate(product(a, b, staging), 1, topology=point.topology)
        outcome, log = world.returned[0], StageLog.of(world.records[0])
        load_ps = log.load_ps(staging.loads)
        plan, theory = shape.plan(hardware.tile), bounds(hardware, shape, staging)
        return GemmRow(
            shape=shape,
            staging=staging,
            dtype=DTYPE.name,
            steps=plan.tiles,
            under_tile=shape.under(hardware.tile),
            kernel_ps=outcome.kernel_ps,
            load_ps=load_ps,
            busy=log.busy,
            records=log.counts,
            stalls=_stalls(world),
            utilisation=hardware.utilisation(plan.macs, outcome.kernel_ps),
            product_utilisation=hardware.utilisation(plan.macs, outcome.kernel_ps - load_ps),
            padding_utilisation=padding_utilisation(hardware, plan),
            theory=theory,
            ratio=outcome.kernel_ps / theory.bound_ps,
            error=rounding_error(a, b, outcome.result, hardware.tile_k),
        )

    def kept(self, topology: TopologyText) -> Mapping[str, Any]:
        """The hardware, which the bounds rest on."""
        return {"hardware": GemmHardware.of(topology.parsed)}

    def problem(self, results: GemmResults) -> str:
        """The figures need every shape in every staging."""
        measured = {(row.shape, row.staging) for row in results.rows}
        full = {(row.shape, staging) for row in results.rows for staging in Staging}
        if results.rows and measured == full:
            return ""
        return "there must be a row for every shape in every staging"

    def passed(self, results: GemmResults) -> str:
        """Summary of the checks that passed, with the product nearest to its bound."""
        nearest = min(results.rows, key=lambda row: row.ratio)
        return (
            f"{len(results.rows)} products: right against float64, none below its bound, "
            f"the nearest {nearest.label}, {nearest.ratio - 1:.1%} above"
        )
