"""Measures one product: simulates it on one PE, checks its result, splits its time into stages."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from kernbench.simulation import Simulation, simulate
from kernbench.studies.milestone_1h_gemm.kernel import product
from kernbench.studies.milestone_1h_gemm.points import GemmPoint
from kernbench.studies.milestone_1h_gemm.rows import GemmRow, GemmStalls, StageBusy, StageRecords
from kernbench.studies.milestone_1h_gemm.shapes import DTYPE, ProductShape
from kernbench.studies.milestone_1h_gemm.theory import bounds, padding_utilisation
from runtime.core.trace import OpRecord
from runtime.language.value import Array

SEED = 1
"""Of the operands. Times do not depend on them."""


def measure(point: GemmPoint) -> GemmRow:
    """Simulate one point."""
    hardware, shape, staging = point.hardware, point.shape, point.staging
    a, b = operands(shape)
    # One SIP in this process: the study distributes products, not SIPs, over processes.
    world = simulate(product(a, b, staging, hardware.tile), 1, topology=point.topology)
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


class StageLog(NamedTuple):
    """The records of the PE that computes, by pipeline stage."""

    dma_in: list[OpRecord]
    fetch: list[OpRecord]
    gemm: list[OpRecord]
    store: list[OpRecord]
    dma_out: list[OpRecord]

    @classmethod
    def of(cls, records: Iterable[OpRecord]) -> "StageLog":
        """Sort the records of an op log; records of other engines are left out."""
        found: dict[tuple[str, str], list[OpRecord]] = {}
        for record in records:
            found.setdefault((record.engine, record.name), []).append(record)
        return cls(
            dma_in=found.get(("pe_dma", "load"), []),
            fetch=found.get(("pe_fetch_store", "fetch"), []),
            gemm=found.get(("pe_gemm", "gemm"), []),
            store=found.get(("pe_fetch_store", "store"), []),
            dma_out=found.get(("pe_dma", "store"), []),
        )

    @property
    def busy(self) -> StageBusy:
        """Busy time of each stage."""
        return StageBusy(
            dma_in_ps=busy_ps(self.dma_in),
            fetch_ps=busy_ps(self.fetch),
            gemm_ps=busy_ps(self.gemm),
            store_ps=busy_ps(self.store),
            dma_out_ps=busy_ps(self.dma_out),
        )

    @property
    def counts(self) -> StageRecords:
        """Number of records of each stage."""
        return StageRecords(
            dma_in=len(self.dma_in),
            fetch=len(self.fetch),
            gemm=len(self.gemm),
            store=len(self.store),
            dma_out=len(self.dma_out),
        )

    def load_ps(self, loads: int) -> int:
        """The time from the start of the first to the end of the last of the kernel's own loads."""
        # The kernel loads operands before it starts the product, so its loads are the first.
        own = sorted(self.dma_in, key=lambda record: record.start_ps)[:loads]
        return own[-1].end_ps - own[0].start_ps if own else 0


def busy_ps(records: Iterable[OpRecord]) -> int:
    """Length of the union of the operations' intervals."""
    total_ps = until_ps = 0
    # Sorted by start: only the part behind `until_ps` is new, the rest overlaps earlier intervals.
    for start_ps, end_ps in sorted((record.start_ps, record.end_ps) for record in records):
        total_ps += max(end_ps - max(start_ps, until_ps), 0)
        until_ps = max(until_ps, end_ps)
    return total_ps


def _stalls(world: Simulation) -> GemmStalls:
    counters = world.done.sips[0].counters
    return GemmStalls(
        dma_ps=counters["gemm_stall_dma_ps"],
        fetch_ps=counters["gemm_stall_fetch_ps"],
        store_ps=counters["gemm_stall_store_ps"],
    )
