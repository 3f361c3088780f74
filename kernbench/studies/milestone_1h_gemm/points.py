"""The points of the study: every shape in every staging, on one PE of one SIP."""

from collections.abc import Iterable
from typing import NamedTuple

from kernbench.oracle.theory.topology_file import TopologyFile
from kernbench.studies.milestone_1h_gemm.shapes import ProductShape, Staging
from kernbench.studies.milestone_1h_gemm.theory import GemmHardware
from kernbench.studies.parameter_study import TopologyText
from runtime.core.errors import UsageError


class GemmPoint(NamedTuple):
    """One product with one staging of its operands; `topology` is a topology file with one SIP."""

    topology: str
    hardware: GemmHardware
    shape: ProductShape
    staging: Staging

    @property
    def cost(self) -> int:
        """Steps of the GEMM engine: the number of simulated events grows with them."""
        return self.shape.plan(self.hardware.tile).tiles

    def __str__(self) -> str:
        return f"{self.shape} {self.staging}"


def plan_points(topology: TopologyText, shapes: Iterable[ProductShape]) -> tuple[GemmPoint, ...]:
    """All points on a topology file.

    Raises `ConfigError` for an invalid file, and `UsageError` if loaded operands do not fit in the
    kernel's scratch.
    """
    hardware = GemmHardware.of(topology.parsed)
    one_sip = TopologyFile.of(topology.text).on_a_ring(1).text
    points = tuple(
        GemmPoint(topology=one_sip, hardware=hardware, shape=shape, staging=staging)
        for shape in shapes
        for staging in Staging
    )
    # Before the first simulation, which would fail only when it reaches the load.
    for point in points:
        _check_scratch(point)
    return points


def _check_scratch(point: GemmPoint) -> None:
    needed, present = point.staging.loaded_bytes(point.shape), point.hardware.kernel_scratch_bytes
    if needed > present:
        raise UsageError(
            f"--shapes: {point} loads {needed:,} bytes of operands, but kernel scratch is "
            f"{present:,} bytes (pe.tcm.kernel_scratch_mb of the topology file)"
        )
