"""Group j, the pipeline: random products of operands in TCM against the recursion of its steps."""

from collections.abc import Iterator
from dataclasses import dataclass

from kernbench import tl, torch
from kernbench.oracle.checks.check import Check
from kernbench.oracle.theory.engines.gemm import GemmNumbers, GemmShape, step_ps
from kernbench.oracle.theory.engines.vector_engine import VectorEngine
from kernbench.oracle.theory.kernels.kernel_costs import KernelCosts
from kernbench.oracle.theory.topology_file import TopologyFile
from kernbench.simulation import simulate
from runtime.core.dtypes import DType, float16, float32, int8, int32
from runtime.core.rng import Random, seeded
from runtime.device.launches.launch import launch_on
from runtime.device.rank.rank_state import running_rank
from runtime.language.value import Pointer
from runtime.model.placement import ONE_PE
from tests.fidelity.theory.tile_pipeline import PipelineTimes, StagedGemm, staged_times

CASES = 12
STREAMED_SIDE = 8
FORMULA = "steps in order, finite register sets and accumulators"
TYPES = ((float16, float16, float32), (float32, float32, float32), (int8, int32, int32))
"""Operands, result, accumulator."""
MODELS = ("macs", "systolic_os")


@dataclass(frozen=True)
class PipelineCase:
    """A product; its file has a drawn tile, engine model and clock."""

    file: TopologyFile
    shape: GemmShape
    types: tuple[DType, DType, DType]
    has_start: bool
    has_bias: bool
    activation: str | None

    def __str__(self) -> str:
        (m, k, n), (dtype, result, _) = self.shape, self.types
        extras = [
            name
            for name, given in (
                ("acc", self.has_start),
                ("bias", self.has_bias),
                (str(self.activation), self.activation is not None),
            )
            if given
        ]
        model, clock = self.file["pe.gemm.model"], self.file["pe.gemm.clock_ghz"]
        tile = "x".join(str(self.file[f"pe.tile.{side}"]) for side in "mkn")
        with_extras = f" + {', '.join(extras)}" if extras else ""
        types = f"{dtype.name} to {result.name}"
        return f"({m} x {k}) ({k} x {n}){with_extras}, {types}, {model} {clock:g} GHz, tile {tile}"


def pipelines(file: TopologyFile, seed: int) -> list[Check]:
    """Random products: the time of the whole product, and the stalls of the engine by cause."""
    rng = seeded(seed)
    cases = [_drawn(file, rng, index) for index in range(CASES)]
    return [
        _streamed(file),
        *(check for index, case in enumerate(cases) for check in _checks(index, case)),
    ]


def _streamed(file: TopologyFile) -> Check:
    """A product of one step whose first operand is one packet from memory."""
    tile = {f"pe.tile.{side}": STREAMED_SIDE for side in "mkn"}
    file = file.with_values(tile | {"sip.cube_mesh": {"w": 1, "h": 1}})
    costs = KernelCosts(file, file["packet_bytes"])

    def kernel(a: Pointer) -> None:
        shape = (STREAMED_SIDE, STREAMED_SIDE)
        tl.dot(tl.ref(a, shape), tl.zeros(shape, float32))

    def program(_rank: int) -> None:
        a = torch.empty(STREAMED_SIDE, STREAMED_SIDE, dtype=torch.float32, dp=ONE_PE)
        torch.launch("gemm", kernel, a)
        torch.ahbm.synchronize()

    world = simulate(program, 1, topology=file.text, data=False)
    load_ps = costs.load_ps(STREAMED_SIDE * STREAMED_SIDE * float32.itemsize)
    return Check(
        id="j.pipeline.dma",
        text="a step whose operand is one packet in the own slice: engine waits for the DMA",
        formula="a load without issue and translation",
        expected=load_ps - costs.commands.translated_ps,
        measured=world.done.sips[0].counters["gemm_stall_dma_ps"],
        unit="ps",
    )


def _drawn(file: TopologyFile, rng: Random, index: int) -> PipelineCase:
    """A product of 2 to 3 tiles along each axis, the last of which is partial in half of the cases.

    The clock puts the engine at a quarter to four times the time of a fetch.
    """
    tile = GemmShape(*(rng.choice((8, 16, 32)) for _ in "mkn"))
    types = rng.choice(TYPES)
    model = MODELS[index % len(MODELS)]
    macs = 2 ** rng.randint(4, 7)
    values = {f"pe.tile.{side}": size for side, size in zip("mkn", tile, strict=True)}
    file = file.with_values(
        values
        | {
            "pe.gemm.model": model,
            "pe.gemm.macs_per_cycle": macs,
            "pe.gemm.rows": rng.choice((4, 8, 16)),
            "pe.gemm.cols": rng.choice((4, 8, 16)),
            "pe.gemm.clock_ghz": 1.0,
        }
    )
    numbers = GemmNumbers.of(file)
    fetch_ps = numbers.fetch_ps(types[0].itemsize)
    clock_ghz = round(
        step_ps(file, tile, last=False) / fetch_ps * rng.choice((0.25, 0.5, 1, 2, 4)), 3
    )
    shape = GemmShape(*(_length(rng, side) for side in tile))
    return PipelineCase(
        file=file.with_values({"pe.gemm.clock_ghz": clock_ghz}),
        shape=shape,
        types=types,
        has_start=rng.random() < 0.4,
        has_bias=rng.random() < 0.5,
        activation=rng.choice((None, "relu")),
    )


def _length(rng: Random, side: int) -> int:
    whole = side * rng.randint(1, 4)
    return whole - rng.choice((0, rng.randint(1, side - 1)))


def _expected(case: PipelineCase) -> PipelineTimes:
    file, engine = case.file, VectorEngine(case.file)
    epilogues = ["add"] * case.has_bias + [case.activation] * (case.activation is not None)

    def epilogue_ps(elements: int) -> int:
        return sum(engine.epilogue_ps(str(name), elements) for name in epilogues)

    gemm = StagedGemm(
        shape=case.shape,
        itemsize=case.types[0].itemsize,
        result_itemsize=case.types[1].itemsize,
        step_ps=lambda size, last: step_ps(file, size, last=last),
        epilogue_ps=epilogue_ps,
        has_start=case.has_start,
        has_bias=case.has_bias,
    )
    return staged_times(GemmNumbers.of(file), gemm)


def _checks(index: int, case: PipelineCase) -> Iterator[Check]:
    expected, measured = _expected(case), _measured(case)
    for name, what, formula, expected_ps, measured_ps in (
        ("time", "time", FORMULA, expected.span_ps, measured.span_ps),
        (
            "fetch",
            "engine waits for fetches",
            FORMULA,
            expected.fetch_stall_ps,
            measured.fetch_stall_ps,
        ),
        (
            "store",
            "engine waits for accumulators",
            FORMULA,
            expected.store_stall_ps,
            measured.store_stall_ps,
        ),
    ):
        yield Check(
            id=f"j.pipeline.{index:02}.{name}",
            text=f"{case}: {what}",
            formula=formula,
            expected=expected_ps,
            measured=measured_ps,
            unit="ps",
        )


def _measured(case: PipelineCase) -> PipelineTimes:
    def kernel() -> None:
        (m, k, n), (dtype, result, total) = case.shape, case.types
        tl.wait(
            tl.composite(
                "gemm",
                tl.zeros((m, k), dtype),
                tl.zeros((k, n), dtype),
                acc=tl.zeros((m, n), total) if case.has_start else None,
                bias=tl.zeros((n,), total) if case.has_bias else None,
                activation=case.activation,
                out_dtype=result,
            )
        )

    def program(_rank: int) -> None:
        device = running_rank().device
        device.wait(launch_on("gemm", kernel, (), [], [(0, 0)]))

    file = case.file.with_values({"sip.cube_mesh": {"w": 1, "h": 1}})
    world = simulate(program, 1, topology=file.text, data=False)
    moves = [record for _, record in world.of("pe_fetch_store")]
    counters = world.done.sips[0].counters
    return PipelineTimes(
        span_ps=max(each.end_ps for each in moves) - min(each.start_ps for each in moves),
        fetch_stall_ps=counters["gemm_stall_fetch_ps"],
        store_stall_ps=counters["gemm_stall_store_ps"],
    )
