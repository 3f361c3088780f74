"""Group j: matrix products on a PE. What bounds them, what a step costs, and a systolic array against SCALE-Sim."""

import csv
from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import ceil
from pathlib import Path
from typing import NamedTuple

from kernbench.validate.check import Bound, Check
from kernbench.validate.closed_form import ClosedForm
from kernbench.validate.gemm_runs import STAGINGS, Measured, Product, measure
from kernbench.validate.gemm_theory import (
    PS_PER_NS,
    GemmNumbers,
    Sides,
    compute_bound_ps,
    fetch_ps,
    memory_bound_ps,
    padding_utilisation,
    staged_ps,
    steps,
    streamed_bytes,
    systolic_cycles,
    tile_ps,
)
from kernbench.validate.variant import Variant
from kernbench.validate.ways import FloorPlan
from runtime.core.dtypes import bfloat16, float16, float32, int8, int32
from runtime.core.rng import Random, seeded

REFERENCE = Path(__file__).parent / "reference" / "scalesim_os32x32.csv"
LARGEST = 256
"""Of the sides of random products."""
ROUNDS = 3
"""Random products of each staging and clock."""
FED_TOLERANCE = 0.05
FED = float16
"""Element type of the products fed from HBM."""
FED_RATIOS = (0.25, 0.5, 2.0, 4.0)
"""Compute bound over memory bound."""


class Run(NamedTuple):
    """A product, the numbers of the file it ran with, and the run."""

    product: Product
    numbers: GemmNumbers
    measured: Measured


def bounded(file: Variant, seed: int) -> list[Check]:
    """Random products: none is faster than its bounds, and no engine is busier than time has passed."""
    file, rng = _of_macs(file), seeded(seed)
    slow = file.with_values({"pe.gemm.clock_ghz": file["pe.gemm.clock_ghz"] / 4})
    # At a quarter of the clock, products are bound by the engine rather than by memory.
    drawn = [
        (_drawn(rng, staging), each)
        for staging in STAGINGS
        for each in (file, slow)
        for _ in range(ROUNDS)
    ]
    runs = [Run(product, GemmNumbers.of(each), measure(each, product)) for product, each in drawn]
    return [*_bounds(runs), *_busy(file, runs)]


def staged(file: Variant) -> list[Check]:
    """Whole tiles, operands and result in TCM."""
    file = _of_macs(file)
    numbers = GemmNumbers.of(file)
    checks: list[Check] = []
    for dtype, result, tiles in (
        (float16, float16, 4),
        (float16, float16, 8),
        (float32, float32, 4),
        (int8, int32, 4),
    ):
        product = Product(_whole(numbers, tiles), dtype, result, "load_load", to_memory=False)
        expected = staged_ps(product.sides, numbers, dtype.itemsize, result.itemsize)
        count = steps(product.sides, numbers.tile)
        says = f"{product}: {count} steps"
        took = measure(file, product).compute_span_ps
        checks.append(
            Check(
                f"j.staged.{dtype.name}.{count}",
                says,
                "steps t + fill + drain",
                expected,
                took,
                0,
                "ps",
            )
        )
    return checks


def fed(file: Variant) -> list[Check]:
    """Operands and result in HBM, tile after tile, at clocks of the engine that make one bound a multiple of the other."""
    file = _unhindered(_of_macs(file))
    return [_fed(file, ratio) for ratio in FED_RATIOS]


def padded(file: Variant) -> list[Check]:
    """Products that end inside a tile, along each axis and along all."""
    file = _of_macs(file)
    numbers = GemmNumbers.of(file)
    m, k, n = numbers.tile
    whole = Sides(2 * m, 2 * k, 2 * n)
    short = {"m": (m - 1, 0, 0), "k": (0, k - 1, 0), "n": (0, 0, n - 1), "mkn": (1, k // 2, n - 1)}
    return [
        _padded(file, numbers, axes, Sides(*map(_less, whole, less)))
        for axes, less in short.items()
    ]


def systolic(file: Variant, seed: int) -> list[Check]:
    """The cycles that an output-stationary array is busy: every row of the SCALE-Sim reference, then sides of any length."""
    # Picoseconds that make cycles: the clock is 1 GHz.
    file = file.with_values({"pe.gemm.model": "systolic_os", "pe.gemm.clock_ghz": 1.0})
    rows = [row for row in reference() if row["dataflow"] == "os" and row["stall_cycles"] == "0"]
    rng = seeded(seed)
    drawn = [Sides(*(rng.randint(1, LARGEST) for _ in "mkn")) for _ in range(ROUNDS)]
    return [*(_referenced(file, row) for row in rows), *(_systolic(file, sides) for sides in drawn)]


def reference() -> list[dict[str, str]]:
    """The rows of the reference as they are in its file."""
    with REFERENCE.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _drawn(rng: Random, staging: str) -> Product:
    dtype, result = rng.choice(
        ((float16, float16), (bfloat16, float32), (float32, float32), (int8, int32))
    )
    sides = Sides(*(rng.randint(1, LARGEST) for _ in "mkn"))
    return Product(
        sides,
        dtype,
        result,
        staging,
        blocked=rng.choice((True, False)),
        to_memory=rng.choice((True, False)),
    )


def _bounds(runs: Sequence[Run]) -> Iterator[Check]:
    formula = "max(2 M N K / peak, bytes / BW) <= T"
    for index, (product, numbers, run) in enumerate(runs):
        compute_ps = compute_bound_ps(product.sides, numbers)
        memory_ps = memory_bound_ps(
            product.read_bytes(numbers.tile), product.written_bytes, numbers
        )
        larger = "compute" if compute_ps > memory_ps else "memory"
        says = f"{product}, {float(numbers.clock_ghz):g} GHz: larger bound, of {larger}, over time"
        share = float(max(compute_ps, memory_ps) / run.span_ps)
        yield Check(f"j.bound.{index:02}", says, formula, 1, share, 0, "", Bound.AT_MOST)


def _busy(file: Variant, runs: Sequence[Run]) -> Iterator[Check]:
    """Of all runs, the one in which an engine was busy for the largest part of the time."""
    for engine in ("gemm", "fetch", "store", "dma"):
        # A request keeps one channel of the DMA busy; the other engines do one thing at a time.
        abreast = file["pe.dma.channels"] if engine == "dma" else 1
        share = max(
            run.measured.counter(f"{engine}_busy_ps") / (abreast * run.measured.span_ps)
            for run in runs
        )
        says = f"largest share of the time that {engine} is busy in {len(runs)} products"
        yield Check(f"j.busy.{engine}", says, "busy <= elapsed", 1, share, 0, "", Bound.AT_MOST)
    share = max(
        float(compute_bound_ps(run.product.sides, run.numbers) / run.measured.span_ps)
        for run in runs
    )
    says = f"largest share of the peak that {len(runs)} products reach"
    yield Check("j.busy.peak", says, "2 M N K / (peak T)", 1, share, 0, "", Bound.AT_MOST)


def _unhindered(file: Variant) -> Variant:
    """The file, where need be with more buffers or a wider port, so that only memory and engine can hold a step up."""
    file = file.with_values({"cube.hbm_ctrl.switch_penalty_ns": 0.0})
    numbers, form = GemmNumbers.of(file), ClosedForm(file.text)
    fetch_gbs = max(file["pe.fetch_store.bw_gbs"], 2 * float(numbers.shared_gbs))
    numbers = GemmNumbers.of(file.with_values({"pe.fetch_store.bw_gbs": fetch_gbs}))
    request, answer = FloorPlan(file).own_slice()
    latency_ps = form.ps("pe.dma.overhead_ns") + form.control_ps(request) + form.latency_ps(answer)
    transfer_ps = memory_bound_ps(
        sum(streamed_bytes(numbers.tile, numbers.tile, FED.itemsize)), 0, numbers
    )
    # Little's law: a buffer is taken from the request of a tile to the end of its fetch.
    needed = ceil((latency_ps + transfer_ps + fetch_ps(numbers, FED.itemsize)) / transfer_ps)
    buffers = max(file["pe.scheduler.tile_buffers"], needed)
    room = {
        "pe.scheduler.tile_buffers": buffers,
        "pe.dma.channels": max(file["pe.dma.channels"], 2 * buffers),
    }
    return file.with_values(room | {"pe.fetch_store.bw_gbs": fetch_gbs})


def _fed(file: Variant, ratio: float) -> Check:
    numbers = GemmNumbers.of(file)
    product = Product(_whole(numbers, 8), FED, FED)
    memory_ps = memory_bound_ps(product.read_bytes(numbers.tile), product.written_bytes, numbers)
    count = steps(product.sides, numbers.tile)
    cycles = count * ceil(Fraction(numbers.tile.macs, numbers.macs_per_cycle))
    file = file.with_values(
        {"pe.gemm.clock_ghz": round(float(cycles * PS_PER_NS / (memory_ps * Fraction(ratio))), 6)}
    )
    compute_ps = count * tile_ps(GemmNumbers.of(file))
    larger = "compute" if compute_ps > memory_ps else "memory"
    says = (
        f"{product}, {count} steps fed from HBM, compute {ratio:g} times memory: bound by {larger}"
    )
    took = measure(file, product).span_ps
    return Check(
        f"j.fed.{ratio:g}",
        says,
        "larger bound",
        float(max(compute_ps, memory_ps)),
        took,
        FED_TOLERANCE,
        "ps",
    )


def _padded(file: Variant, numbers: GemmNumbers, axes: str, sides: Sides) -> Check:
    run = measure(file, Product(sides, staging="load_load", to_memory=False))
    expected = padding_utilisation(sides, numbers.tile)
    measured = Fraction(
        sides.macs * tile_ps(numbers), numbers.tile.macs * run.counter("gemm_busy_ps")
    )
    says = f"{sides.m} x {sides.k} x {sides.n} ends inside a tile along {', '.join(axes)}: useful share of the busy time"
    return Check(
        f"j.pad.{axes}", says, "M K N / (steps m k n)", float(expected), float(measured), 0, ""
    )


def _referenced(file: Variant, row: dict[str, str]) -> Check:
    """SCALE-Sim gives the number of the last cycle, counted from 0; the cycles that have passed are one more."""
    rows, cols, m, n, k = (int(row[column]) for column in ("rows", "cols", "M", "N", "K"))
    last = int(row["scalesim_total_cycles"])
    says = f"M {m}, N {n}, K {k} on {rows} x {cols}: SCALE-Sim's last cycle, counted from 0, is {last}, so cycles passed"
    cycles = _busy_cycles(file, Sides(m, k, n), rows, cols)
    return Check(f"j.systolic.{m}x{n}x{k}", says, "SCALE-Sim + 1", last + 1, cycles, 0, "cycles")


def _systolic(file: Variant, sides: Sides) -> Check:
    rows, cols = file["pe.gemm.rows"], file["pe.gemm.cols"]
    says = f"M {sides.m}, N {sides.n}, K {sides.k} on {rows} x {cols}"
    formula, expected = "ceil(M/R) ceil(N/C) (K + R + C - 2)", systolic_cycles(sides, rows, cols)
    cycles = _busy_cycles(file, sides, rows, cols)
    return Check(
        f"j.systolic.{sides.m}x{sides.n}x{sides.k}", says, formula, expected, cycles, 0, "cycles"
    )


def _busy_cycles(file: Variant, sides: Sides, rows: int, cols: int) -> float:
    array = {"pe.gemm.rows": rows, "pe.gemm.cols": cols, "pe.tile.m": rows, "pe.tile.n": cols}
    return measure(file.with_values(array), Product(sides)).counter("gemm_busy_ps") / PS_PER_NS


def _of_macs(file: Variant) -> Variant:
    return file.with_values({"pe.gemm.model": "macs"})


def _whole(numbers: GemmNumbers, tiles: int) -> Sides:
    return Sides(*(tiles * side for side in numbers.tile))


def _less(length: int, less: int) -> int:
    return max(length - less, 1)
