"""Group j: matrix products on a PE: lower bounds, times, padding."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from math import ceil
from typing import NamedTuple

from kernbench.oracle.checks.check import Check, Relation
from kernbench.oracle.checks.engines.gemm_runs import STAGINGS, GemmCase, GemmMeasurement, measure
from kernbench.oracle.theory.engines.gemm import (
    GemmNumbers,
    GemmShape,
    padding_utilisation,
    steps,
    streamed_bytes,
    tiled_cycles,
)
from kernbench.oracle.theory.paths.memory_access import MemoryAccess, pe_and_slice
from kernbench.oracle.theory.roofline import binding
from kernbench.oracle.theory.topology_file import TopologyFile
from runtime.core.dtypes import bfloat16, float8e4nv, float16, float32, int8, int32
from runtime.core.rng import Random, seeded
from runtime.core.simtime import PS_PER_NS

LARGEST = 256
"""Largest side of random products."""
ROUNDS = 3
"""Random products for each staging and clock."""
FED_TOLERANCE = 0.05
FED_DTYPE = float16
"""Element type of the products whose operands are streamed from HBM."""
FED_RATIOS = (0.25, 0.5, 2.0, 4.0)
"""Compute bound / memory bound."""


class GemmRun(NamedTuple):
    """A product, the numbers of the topology file of its run, and what was measured."""

    case: GemmCase
    numbers: GemmNumbers
    measured: GemmMeasurement

    @property
    def compute_ps(self) -> Fraction:
        """The compute bound."""
        return self.numbers.compute_bound_ps(self.case.shape)

    @property
    def memory_ps(self) -> Fraction:
        """The memory bound."""
        return _memory_bound_ps(self.case, self.numbers)


def bounded(file: TopologyFile, seed: int) -> list[Check]:
    """Random products: none is faster than its bounds, no engine is busy for more than the time."""
    file, rng = _with_macs_model(file), seeded(seed)
    # At a quarter of the clock, the engine rather than the memory bounds most products.
    slow = file.with_values({"pe.gemm.clock_ghz": file["pe.gemm.clock_ghz"] / 4})
    drawn = [
        (_drawn(rng, staging), each)
        for staging in STAGINGS
        for each in (file, slow)
        for _ in range(ROUNDS)
    ]
    runs = [GemmRun(case, GemmNumbers.of(each), measure(each, case)) for case, each in drawn]
    return [*_bounds(runs), *_busy(file, runs)]


def staged(file: TopologyFile) -> list[Check]:
    """Products of whole tiles with operands and result in the TCM."""
    file = _with_macs_model(file)
    cases = [
        GemmCase(_whole(file, tiles), dtype, result, "load_load", to_memory=False)
        for dtype, result, tiles in (
            (float16, float16, 4),
            (float16, float16, 8),
            (float32, float32, 4),
            (int8, int32, 4),
            (float8e4nv, float32, 4),
        )
    ]
    return [_staged(file, case) for case in (*cases, replace(cases[0], transposed=True))]


def fed(file: TopologyFile) -> list[Check]:
    """Products streamed from HBM, at engine clocks which make one bound a multiple of the other."""
    file = _with_free_pipeline(_with_macs_model(file))
    return [_fed(file, ratio) for ratio in FED_RATIOS]


def padded(file: TopologyFile) -> list[Check]:
    """Products that end inside a tile, along each axis and along all of them."""
    file = _with_macs_model(file)
    m, k, n = GemmNumbers.of(file).tile
    whole = GemmShape(2 * m, 2 * k, 2 * n)
    missing = {"m": (m - 1, 0, 0), "k": (0, k - 1, 0), "n": (0, 0, n - 1)}
    missing["mkn"] = (1, k // 2, n - 1)
    return [
        _padded(file, axes, GemmShape(*map(_shorter, whole, less)))
        for axes, less in missing.items()
    ]


def _drawn(rng: Random, staging: str) -> GemmCase:
    dtype, result = rng.choice(
        ((float16, float16), (bfloat16, float32), (float32, float32), (int8, int32))
    )
    return GemmCase(
        shape=GemmShape(*(rng.randint(1, LARGEST) for _ in "mkn")),
        dtype=dtype,
        result=result,
        staging=staging,
        blocked=rng.choice((True, False)),
        to_memory=rng.choice((True, False)),
    )


def _memory_bound_ps(case: GemmCase, numbers: GemmNumbers) -> Fraction:
    return numbers.memory_bound_ps(case.read_bytes(numbers.tile), case.written_bytes)


def _bounds(runs: Sequence[GemmRun]) -> Iterator[Check]:
    for index, run in enumerate(runs):
        limit = binding(run.compute_ps, run.memory_ps)
        clock = f"{float(run.numbers.clock_ghz):g} GHz"
        yield _at_most_one(
            f"j.bound.{index:02}",
            f"{run.case}, {clock}: larger bound, of {limit}, over time",
            "max(2 M N K / peak, bytes / BW) <= T",
            float(max(run.compute_ps, run.memory_ps) / run.measured.span_ps),
        )


def _busy(file: TopologyFile, runs: Sequence[GemmRun]) -> Iterator[Check]:
    """Busy time of each engine as a share of the run, in the run where that is largest."""
    for engine in ("gemm", "fetch", "store", "dma"):
        # A request occupies one channel of the DMA; the other engines serve one item at a time.
        servers = file["pe.dma.channels"] if engine == "dma" else 1
        yield _at_most_one(
            f"j.busy.{engine}",
            f"largest share of the time that {engine} is busy in {len(runs)} products",
            "busy <= elapsed",
            max(
                run.measured.counter(f"{engine}_busy_ps") / (servers * run.measured.span_ps)
                for run in runs
            ),
        )
    yield _at_most_one(
        "j.busy.peak",
        f"largest share of the peak of {len(runs)} products",
        "2 M N K / (peak T)",
        max(float(run.compute_ps / run.measured.span_ps) for run in runs),
    )


def _at_most_one(check_id: str, text: str, formula: str, share: float) -> Check:
    return Check(
        id=check_id,
        text=text,
        formula=formula,
        expected=1,
        measured=share,
        unit="",
        relation=Relation.AT_MOST,
    )


def _with_free_pipeline(file: TopologyFile) -> TopologyFile:
    """Enough buffers and a port wide enough that only memory and engine limit a step."""
    file = file.with_values({"cube.hbm_ctrl.switch_penalty_ns": 0.0})
    memory_gbs = GemmNumbers.of(file).memory_gbs
    fetch_gbs = max(file["pe.fetch_store.bw_gbs"], 2 * float(memory_gbs))
    numbers = GemmNumbers.of(file.with_values({"pe.fetch_store.bw_gbs": fetch_gbs}))
    latency_ps = MemoryAccess(file).read(*pe_and_slice((0, 0), (0, 0)), 1).latency_ps
    tile_bytes = sum(streamed_bytes(numbers.tile, numbers.tile, FED_DTYPE.itemsize))
    transfer_ps = numbers.memory_bound_ps(tile_bytes, 0)
    # Little's law: a buffer is occupied from the request of a tile to the end of its fetch.
    occupied_ps = latency_ps + transfer_ps + numbers.fetch_ps(FED_DTYPE.itemsize)
    buffers = max(file["pe.scheduler.tile_buffers"], ceil(occupied_ps / transfer_ps))
    return file.with_values(
        {
            "pe.scheduler.tile_buffers": buffers,
            "pe.dma.channels": max(file["pe.dma.channels"], 2 * buffers),
            "pe.fetch_store.bw_gbs": fetch_gbs,
        }
    )


def _staged(file: TopologyFile, case: GemmCase) -> Check:
    numbers = GemmNumbers.of(file)
    count = steps(case.shape, numbers.tile)
    return Check(
        id=f"j.staged.{case.dtype.name}.{count}{'.transposed' if case.transposed else ''}",
        text=f"{case}: {count} steps",
        formula="steps t + fill + drain",
        expected=numbers.staged_ps(case.shape, case.dtype.itemsize, case.result.itemsize),
        measured=measure(file, case).compute_span_ps,
        unit="ps",
    )


def _fed(file: TopologyFile, ratio: float) -> Check:
    numbers = GemmNumbers.of(file)
    case = GemmCase(_whole(file, 8), FED_DTYPE, FED_DTYPE)
    memory_ps, count = _memory_bound_ps(case, numbers), steps(case.shape, numbers.tile)
    cycles = tiled_cycles(case.shape, numbers.tile, numbers.macs_per_cycle)
    clock_ghz = round(float(cycles * PS_PER_NS / (memory_ps * Fraction(ratio))), 6)
    file = file.with_values({"pe.gemm.clock_ghz": clock_ghz})
    compute_ps = count * GemmNumbers.of(file).tile_ps()
    streamed = f"{case}, {count} steps fed from HBM"
    limit = binding(compute_ps, memory_ps)
    return Check(
        id=f"j.fed.{ratio:g}",
        text=f"{streamed}, compute {ratio:g} times memory: bound by {limit}",
        formula="larger bound",
        expected=float(max(compute_ps, memory_ps)),
        measured=measure(file, case).span_ps,
        tolerance=FED_TOLERANCE,
        unit="ps",
    )


def _padded(file: TopologyFile, axes: str, shape: GemmShape) -> Check:
    numbers = GemmNumbers.of(file)
    run = measure(file, GemmCase(shape, staging="load_load", to_memory=False))
    useful_ps = Fraction(shape.macs * numbers.tile_ps(), numbers.tile.macs)
    sides = " x ".join(map(str, shape))
    text = f"{sides} ends inside a tile along {', '.join(axes)}: useful share of the busy time"
    return Check(
        id=f"j.pad.{axes}",
        text=text,
        formula="M K N / (steps m k n)",
        expected=float(padding_utilisation(shape, numbers.tile)),
        measured=float(useful_ps / run.counter("gemm_busy_ps")),
        unit="",
    )


def _with_macs_model(file: TopologyFile) -> TopologyFile:
    return file.with_values({"pe.gemm.model": "macs"})


def _whole(file: TopologyFile, tiles: int) -> GemmShape:
    """`tiles` whole tiles along each axis."""
    return GemmShape(*(tiles * side for side in GemmNumbers.of(file).tile))


def _shorter(length: int, less: int) -> int:
    return max(length - less, 1)
