"""Rows of the study of matrix products that were not simulated: times follow from the bounds."""

from kernbench.studies.milestone_1h_gemm.rows import (
    GemmResults,
    GemmRow,
    GemmStalls,
    StageBusy,
    StageRecords,
)
from kernbench.studies.milestone_1h_gemm.theory import GemmHardware, ProductShape, Staging, bounds

HARDWARE = GemmHardware(
    tile_m=32,
    tile_k=64,
    tile_n=32,
    gemm_model="macs",
    macs_per_cycle=4096,
    array_rows=32,
    array_cols=32,
    clock_ghz=1.0,
    memory_gbs=204.8,
    link_gbs=256.0,
    port_gbs=512.0,
    kernel_scratch_bytes=1 << 20,
)
LATENCY_PS = 50_000


def row(
    shape: ProductShape, staging: Staging, *, error: float = 0.5, extra_ps: int = LATENCY_PS
) -> GemmRow:
    """A product that takes `extra_ps` more than its bound."""
    plan, theory = shape.plan(HARDWARE.tile), bounds(HARDWARE, shape, staging)
    kernel_ps = theory.bound_ps + extra_ps
    return GemmRow(
        shape=shape,
        staging=staging,
        dtype="f16",
        steps=plan.tiles,
        under_tile=shape.under(HARDWARE.tile),
        kernel_ps=kernel_ps,
        load_ps=theory.load_ps,
        busy=StageBusy(
            dma_in_ps=theory.memory_ps,
            fetch_ps=theory.fetch_ps,
            gemm_ps=theory.compute_ps,
            store_ps=theory.store_ps,
            dma_out_ps=theory.store_ps,
        ),
        records=StageRecords(
            dma_in=plan.tiles,
            fetch=plan.tiles,
            gemm=plan.tiles,
            store=plan.output_tiles,
            dma_out=plan.output_tiles,
        ),
        stalls=GemmStalls(extra_ps, 0, 0),
        utilisation=HARDWARE.utilisation(plan.macs, kernel_ps),
        product_utilisation=HARDWARE.utilisation(plan.macs, kernel_ps - theory.load_ps),
        padding_utilisation=plan.padding_utilisation,
        theory=theory,
        ratio=kernel_ps / theory.bound_ps,
        error=error,
    )


def results(*shapes: ProductShape) -> GemmResults:
    rows = tuple(row(shape, staging) for shape in shapes for staging in Staging)
    return GemmResults(
        version=1,
        topology="topology.yaml",
        topology_hash="0" * 64,
        hardware=HARDWARE,
        rows=rows,
    )
