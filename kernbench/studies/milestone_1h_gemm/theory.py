"""The products of the study, and their bounds: least times, from the topology file alone.

Every engine of the PE is a server, and none can finish before it has served all its work: the GEMM
engine all steps, the ports of TCM and the memory all bytes. An operand is loaded to TCM before the
product starts, so the time of loading is added:

    bound = bytes loaded / memory + max(steps * tile time,
                                        bytes streamed / memory,
                                        bytes fetched / port,
                                        bytes stored / port)

This is a roofline of four roofs (S. Williams, A. Waterman, D. Patterson, "Roofline", CACM 52(4),
2009). The time to fill and drain the pipeline is not in it: a measurement exceeds the bound by that
time and by stalls.
"""

import re
from enum import StrEnum
from fractions import Fraction
from math import floor
from typing import NamedTuple

from msgspec import Struct

from kernbench.oracle.theory.bandwidths import own_memory_gbs, peak_macs_of
from kernbench.oracle.theory.engines.gemm import (
    GemmShape,
    array_passes,
    streamed_bytes,
    systolic_cycles,
    tiled_cycles,
)
from kernbench.oracle.theory.roofline import bytes_ps, compute_bound_ps, cycles_ps, memory_bound_ps
from kernbench.oracle.theory.topology_file import TopologyFile
from runtime.core.dtypes import float16
from runtime.core.errors import UsageError
from runtime.core.simtime import exact
from runtime.model.schema.topology_schema import Topology
from runtime.model.tiles import TilePlan, TileSize

DTYPE = float16
"""Element type of both operands and of the result."""
_SHAPE = re.compile(r"([1-9]\d{0,5})x([1-9]\d{0,5})x([1-9]\d{0,5})")


class ProductShape(NamedTuple):
    """(m, k) times (k, n)."""

    m: int
    k: int
    n: int

    def __str__(self) -> str:
        return f"{self.m}x{self.k}x{self.n}"

    def plan(self, tile: TileSize) -> TilePlan:
        """The steps of the GEMM engine."""
        return TilePlan(self.m, self.k, self.n, tile)

    def under(self, tile: TileSize) -> bool:
        """Whether a side is shorter than the tile's: then no step fills the engine."""
        return any(side < full for side, full in zip(self, tile, strict=True))


class Staging(StrEnum):
    """The paths of the operands A and B to the GEMM engine.

    `ref`: streamed tile by tile by the scheduler; `load`: loaded to TCM as a whole before the
    product.
    """

    REF_REF = "ref_ref"
    LOAD_REF = "load_ref"
    LOAD_LOAD = "load_load"

    @property
    def loads_a(self) -> bool:
        """Whether A is loaded."""
        return self is not Staging.REF_REF

    @property
    def loads_b(self) -> bool:
        """Whether B is loaded."""
        return self is Staging.LOAD_LOAD

    @property
    def loads(self) -> int:
        """Number of loaded operands."""
        return self.loads_a + self.loads_b

    def loaded_bytes(self, shape: ProductShape) -> int:
        """Bytes of the loaded operands in the kernel's scratch."""
        elements = self.loads_a * shape.m * shape.k + self.loads_b * shape.k * shape.n
        return elements * DTYPE.itemsize


def parse_shapes(text: str) -> tuple[ProductShape, ...]:
    """The shapes in `MxKxN,MxKxN,...`; `UsageError` for any other text and for duplicates."""
    shapes: list[ProductShape] = []
    # In the order given, which is the order of the rows.
    for part in text.split(","):
        sizes = _SHAPE.fullmatch(part.strip())
        if sizes is None:
            raise UsageError(
                f"--shapes: expected MxKxN with sides from 1 to 999999, got {part.strip()!r}"
            )
        shape = ProductShape(*map(int, sizes.groups()))
        # Two equal points would be one key of the rows.
        if shape in shapes:
            raise UsageError(f"--shapes: {shape} is named twice")
        shapes.append(shape)
    return tuple(shapes)


class GemmHardware(Struct, frozen=True, forbid_unknown_fields=True):
    """The numbers of the topology file that the bounds depend on.

    `memory_gbs` bounds reads and writes of the PE's own HBM slice together: the slice's channels
    times their efficiency, or the port of TCM if that is narrower. `link_gbs` is the crossbar
    between them in each direction, `port_gbs` each direction between TCM and registers.
    """

    tile_m: int
    tile_k: int
    tile_n: int
    gemm_model: str
    macs_per_cycle: int
    array_rows: int
    array_cols: int
    clock_ghz: float
    memory_gbs: float
    link_gbs: float
    port_gbs: float
    kernel_scratch_bytes: int

    @classmethod
    def of(cls, topology: Topology) -> "GemmHardware":
        """The numbers of a validated topology file."""
        # A dump has the defaults of the schema too, which the user's file may leave out.
        pe, file = topology.pe, TopologyFile(topology.values())
        return cls(
            tile_m=pe.tile.m,
            tile_k=pe.tile.k,
            tile_n=pe.tile.n,
            gemm_model=pe.gemm.model,
            macs_per_cycle=pe.gemm.macs_per_cycle,
            array_rows=pe.gemm.rows,
            array_cols=pe.gemm.cols,
            clock_ghz=pe.gemm.clock_ghz,
            memory_gbs=float(own_memory_gbs(file)),
            link_gbs=topology.xbar.to_hbm_bw_gbs,
            port_gbs=pe.fetch_store.bw_gbs,
            kernel_scratch_bytes=topology.kernel_scratch_bytes,
        )

    @property
    def tile(self) -> TileSize:
        """The full tile of the GEMM engine."""
        return TileSize(self.tile_m, self.tile_k, self.tile_n)

    @property
    def peak_macs_per_cycle(self) -> int:
        """Peak of the GEMM engine: its lanes, or one multiplication a cycle in each array cell."""
        array = self.array_rows, self.array_cols
        return peak_macs_of(self.gemm_model, self.macs_per_cycle, array)

    @property
    def peak_tflops(self) -> float:
        """The peak in TFLOPS: a multiplication and its addition are two operations."""
        return 2 * self.peak_macs_per_cycle * self.clock_ghz / 1000

    def utilisation(self, macs: int, time_ps: int) -> float:
        """`macs` multiplications in `time_ps`, as a share of the peak."""
        clock_ghz = exact(self.clock_ghz)
        return float(compute_bound_ps(macs, self.peak_macs_per_cycle, clock_ghz) / time_ps)


class GemmBounds(Struct, frozen=True, forbid_unknown_fields=True):
    """The bounds of one product, in picoseconds and rounded down.

    `load_ps` is the memory's time for loaded operands, `stream_ps` for streamed operands and the
    result, `memory_ps` for all of them; `compute_ps`, `fetch_ps` and `store_ps` are the times of
    the engines. `binds` names the largest time of the product itself.
    """

    compute_ps: int
    memory_ps: int
    load_ps: int
    stream_ps: int
    fetch_ps: int
    store_ps: int
    bound_ps: int
    binds: str


def bounds(hardware: GemmHardware, shape: ProductShape, staging: Staging) -> GemmBounds:
    """The bounds of a product.

    A streamed operand is read again in every step: the scheduler keeps no tile for a later step.
    """
    fetched = streamed_bytes(GemmShape(*shape), GemmShape(*hardware.tile), DTYPE.itemsize)
    streamed = [
        nbytes
        for nbytes, loaded in zip(fetched, (staging.loads_a, staging.loads_b), strict=True)
        if not loaded
    ]
    result = shape.m * shape.n * DTYPE.itemsize
    # Loading reads each operand once and writes nothing to memory.
    load = _memory(hardware, staging.loaded_bytes(shape), 0)
    stream = _memory(hardware, sum(streamed), result)
    port_gbs = exact(hardware.port_gbs)
    product = {
        "compute": _computing(hardware, shape.plan(hardware.tile)),
        "memory": stream,
        "fetch": bytes_ps(sum(fetched), port_gbs),
        "store": bytes_ps(result, port_gbs),
    }
    # Loading ends before the product starts, so its time is added to that of the slowest engine.
    binds = max(product, key=product.__getitem__)
    return GemmBounds(
        compute_ps=floor(product["compute"]),
        memory_ps=floor(load + stream),
        load_ps=floor(load),
        stream_ps=floor(stream),
        fetch_ps=floor(product["fetch"]),
        store_ps=floor(product["store"]),
        bound_ps=floor(load + product[binds]),
        binds=binds,
    )


def padding_utilisation(hardware: GemmHardware, plan: TilePlan) -> float:
    """The largest utilisation that padding permits.

    The model `macs` takes as long for a partial tile as for a full one; in a systolic array the
    idle rows and columns of cells take part in every pass.
    """
    if hardware.gemm_model == "systolic_os":
        return (
            plan.m
            * plan.n
            / (
                array_passes(*_shapes(plan), hardware.array_rows, hardware.array_cols)
                * hardware.array_rows
                * hardware.array_cols
            )
        )
    return plan.padding_utilisation


def _computing(hardware: GemmHardware, plan: TilePlan) -> Fraction:
    """Picoseconds of the GEMM engine."""
    product, tile = _shapes(plan)
    if hardware.gemm_model == "systolic_os":
        cycles = systolic_cycles(product, hardware.array_rows, hardware.array_cols, tile)
    else:
        cycles = tiled_cycles(product, tile, hardware.macs_per_cycle)
    return cycles_ps(cycles, exact(hardware.clock_ghz))


def _shapes(plan: TilePlan) -> tuple[GemmShape, GemmShape]:
    """The product, and its tile."""
    return GemmShape(plan.m, plan.k, plan.n), GemmShape(*plan.tile)


def _memory(hardware: GemmHardware, read: int, written: int) -> Fraction:
    """Picoseconds of the memory and of the links to it, one for each direction."""
    shared_gbs, link_gbs = exact(hardware.memory_gbs), exact(hardware.link_gbs)
    return memory_bound_ps(read, written, shared_gbs, link_gbs)
