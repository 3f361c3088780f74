"""Registers `kernbench --bench milestone-1h-gemm`; loads the study when it runs."""

from runtime.core.bench_registry import StudyOptions, study

DEFAULT_SHAPES = (
    "16x32x16,32x32x32,128x128x128,512x512x512,1024x128x64,64x128x1024,64x4096x64,200x200x200"
)
"""Two below one tile, two cubes, a tall, a wide and a deep one, and one that no tile divides.

A loaded operand lies in kernel scratch; none of these needs more than the smallest scratch, 1 MiB.
"""


@study(
    "milestone-1h-gemm",
    "matrix products on one PE, in shapes x stagings: "
    "stage times, utilisation, theory; JSON and figures",
    shapes="products to simulate, as MxKxN,MxKxN,...",
)
def milestone_1h_gemm(options: StudyOptions, *, shapes: str = DEFAULT_SHAPES) -> bool:
    """Whether every product is right, not faster than its bound, and within the peak."""
    from kernbench.studies.milestone_1h_gemm.definition import GemmStudy

    return GemmStudy(shapes).run(options)
