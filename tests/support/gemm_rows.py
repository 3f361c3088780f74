"""StridedBlock of the matrix product study that were not simulated: every time follows from the bounds."""

from kernbench.studies.milestone_1h_gemm.rows import VERSION, Busy, Records, Row, Stalls, Sweep
from kernbench.studies.milestone_1h_gemm.shapes import Shape, Staging
from kernbench.studies.milestone_1h_gemm.theory import Hardware, bounds

HARDWARE = Hardware(
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


def row(shape: Shape, staging: Staging, *, error: float = 0.5, extra_ps: int = LATENCY_PS) -> Row:
    """What takes `extra_ps` more than its bound."""
    plan, theory = shape.plan(HARDWARE.tile), bounds(HARDWARE, shape, staging)
    kernel_ps = theory.bound_ps + extra_ps
    return Row(
        shape=shape,
        staging=staging,
        dtype="f16",
        steps=plan.tiles,
        under_tile=shape.under(HARDWARE.tile),
        kernel_ps=kernel_ps,
        load_ps=theory.load_ps,
        busy=Busy(
            theory.memory_ps, theory.fetch_ps, theory.compute_ps, theory.store_ps, theory.store_ps
        ),
        records=Records(plan.tiles, plan.tiles, plan.tiles, plan.output_tiles, plan.output_tiles),
        stalls=Stalls(extra_ps, 0, 0),
        utilisation=HARDWARE.utilisation(plan.macs, kernel_ps),
        product_utilisation=HARDWARE.utilisation(plan.macs, kernel_ps - theory.load_ps),
        padding_utilisation=plan.padding_utilisation,
        theory=theory,
        ratio=kernel_ps / theory.bound_ps,
        error=error,
    )


def sweep(*shapes: Shape) -> Sweep:
    rows = tuple(row(shape, staging) for shape in shapes for staging in Staging)
    return Sweep(VERSION, "topology.yaml", "0" * 64, HARDWARE, rows)
