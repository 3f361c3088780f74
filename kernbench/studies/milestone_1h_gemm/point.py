"""One point of the sweep: a product simulated on one PE, its result checked, its time taken apart."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from kernbench.studies.milestone_1h_gemm.kernel import product
from kernbench.studies.milestone_1h_gemm.rows import Busy, Records, Row, Stalls
from kernbench.studies.milestone_1h_gemm.shapes import DTYPE, Shape, Staging
from kernbench.studies.milestone_1h_gemm.theory import Hardware, bounds, padding_utilisation
from runtime.core.trace import OpRecord
from runtime.language.value import Array
from sip_node.local_run import World, simulate

SEED = 1
"""Of the operands. Times do not depend on them."""


class Point(NamedTuple):
    """A shape with its operands staged in one way, on the hardware of a topology file with one SIP."""

    topology: str
    hardware: Hardware
    shape: Shape
    staging: Staging

    @property
    def cost(self) -> int:
        """Steps of the GEMM engine: what simulating it costs grows with them."""
        return self.shape.plan(self.hardware.tile).tiles

    def __str__(self) -> str:
        return f"{self.shape} {self.staging}"


def measure(point: Point) -> Row:
    """Simulate one point."""
    _, hardware, shape, staging = point
    a, b = operands(shape)
    world = simulate(product(a, b, staging, hardware.tile), 1, topology=point.topology)
    done, records = world.returned[0], Stages.of(world.records[0])
    load_ps = records.load_ps(staging.loads)
    plan, theory = shape.plan(hardware.tile), bounds(hardware, shape, staging)
    return Row(
        shape=shape,
        staging=staging,
        dtype=DTYPE.name,
        steps=plan.tiles,
        under_tile=shape.under(hardware.tile),
        kernel_ps=done.kernel_ps,
        load_ps=load_ps,
        busy=records.busy,
        records=records.counts,
        stalls=_stalls(world),
        utilisation=hardware.utilisation(plan.macs, done.kernel_ps),
        product_utilisation=hardware.utilisation(plan.macs, done.kernel_ps - load_ps),
        padding_utilisation=padding_utilisation(hardware, plan),
        theory=theory,
        ratio=done.kernel_ps / theory.bound_ps,
        error=rounding_error(a, b, done.result, hardware.tile_k),
    )


def operands(shape: Shape) -> tuple[Array, Array]:
    """A and B of a shape: uniform in [-1, 1), the same in every process."""
    rng = np.random.default_rng([SEED, *shape])
    a, b = rng.uniform(-1, 1, (shape.m, shape.k)), rng.uniform(-1, 1, (shape.k, shape.n))
    return a.astype(DTYPE.numpy), b.astype(DTYPE.numpy)


def rounding_error(a: Array, b: Array, result: Array, tile_k: int) -> float:
    """The largest difference from the product in float64, as a share of what rounding allows.

    That is half a unit in the last place of the result's type, and one of float32 for every step that joins the accumulator,
    whose sum is never larger than |a| @ |b| (N. Higham, "Accuracy and Stability of Numerical Algorithms", 2nd ed., 3.1).
    """
    exact = a.astype(np.float64) @ b.astype(np.float64)
    steps = -(-a.shape[1] // tile_k)
    magnitude = np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64)
    kind = np.finfo(result.dtype)
    inner = steps * np.finfo(np.float32).eps * magnitude
    allowed = inner + kind.eps / 2 * (np.abs(exact) + inner) + kind.smallest_subnormal
    return float((np.abs(result.astype(np.float64) - exact) / allowed).max())


class Stages(NamedTuple):
    """The records of the one PE that works, by stage."""

    dma_in: list[OpRecord]
    fetch: list[OpRecord]
    gemm: list[OpRecord]
    store: list[OpRecord]
    dma_out: list[OpRecord]

    @classmethod
    def of(cls, records: Iterable[OpRecord]) -> "Stages":
        """Sort an op log."""
        found: dict[tuple[str, str], list[OpRecord]] = {}
        for record in records:
            found.setdefault((record.engine, record.name), []).append(record)
        names = (
            ("pe_dma", "load"),
            ("pe_fetch_store", "fetch"),
            ("pe_gemm", "gemm"),
            ("pe_fetch_store", "store"),
            ("pe_dma", "store"),
        )
        return cls(*(found.get(name, []) for name in names))

    @property
    def busy(self) -> Busy:
        """How long each stage was at work."""
        return Busy(*map(busy_ps, self))

    @property
    def counts(self) -> Records:
        """Records of each stage."""
        return Records(*map(len, self))

    def load_ps(self, loads: int) -> int:
        """From the start of the first to the end of the last of the kernel's own loads, which come before everything else."""
        own = sorted(self.dma_in, key=lambda record: record.start_ps)[:loads]
        return own[-1].end_ps - own[0].start_ps if own else 0


def busy_ps(records: Iterable[OpRecord]) -> int:
    """Time in which at least one of the operations was on its way."""
    total_ps = until_ps = 0
    for start_ps, end_ps in sorted((record.start_ps, record.end_ps) for record in records):
        total_ps += max(end_ps - max(start_ps, until_ps), 0)
        until_ps = max(until_ps, end_ps)
    return total_ps


def _stalls(world: World) -> Stalls:
    counters = world.done.sips[0].counters
    return Stalls(*(counters[f"gemm_stall_{reason}_ps"] for reason in ("dma", "fetch", "store")))
