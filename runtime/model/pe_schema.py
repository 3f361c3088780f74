"""The part of the schema of `topology.yaml` that describes a processing element, key `pe`."""

from typing import Annotated, Literal

from msgspec import Meta

from runtime.core.section import Section
from runtime.model.draws import Scaled, among
from runtime.model.quantities import Count, Gbs, Ghz, Ns, Overhead

TileSide = Annotated[int, Meta(ge=1, le=4096), among(16, 32, 64)]
# A clocked engine takes whole cycles; one that is faster for a function has more lanes.
VectorCycles = Annotated[int, Meta(ge=1, le=1 << 16), Scaled()]


class Dma(Section, frozen=True):
    """The DMA engine of a PE.

    At most `channels` requests, and at most `outstanding` packets that answer them, are in flight.
    A descriptor of a gather takes `gather_row_ns`.
    """

    overhead_ns: Ns
    gather_row_ns: Ns
    channels: Annotated[int, Meta(ge=1, le=1024), among(1, 2, 8)]
    outstanding: Annotated[int, Meta(ge=1, le=65536), among(1, 3, 16)]


class CommandCpu(Section, frozen=True):
    """The CPU of a PE: `overhead_ns` issues a command, `program_ns` begins a program of a grid."""

    overhead_ns: Ns
    program_ns: Ns


class Tcm(Section, frozen=True):
    """How the tightly coupled memory is divided, and its bandwidth."""

    bw_gbs: Gbs
    scheduler_reserved_mb: Annotated[int, Meta(ge=0, le=1 << 20), Scaled()]
    kernel_scratch_mb: Count
    collective_scratch_mb: Count
    transfer_scratch_mb: Count


class Scheduler(Section, frozen=True):
    """The scheduler of a PE.

    Its part of TCM has room for `tile_buffers` tiles of each operand and of the result.
    """

    overhead_ns: Ns
    tile_buffers: Annotated[int, Meta(ge=1, le=1024), among(1, 2, 6)]


class TileSides(Section, frozen=True):
    """The largest step of the GEMM engine: (m, k) times (k, n)."""

    m: TileSide
    k: TileSide
    n: TileSide


class FetchStore(Section, frozen=True):
    """The unit that moves data between TCM and registers; the bandwidth is per direction."""

    bw_gbs: Gbs


class GemmEngine(Section, frozen=True):
    """The matrix engine of a PE.

    `macs_per_cycle` belongs to the model `macs`, `rows` and `cols` to `systolic_os`.
    """

    model: Literal["macs", "systolic_os"]
    clock_ghz: Ghz
    macs_per_cycle: Count
    rows: Annotated[int, Meta(ge=1, le=4096), Scaled()]
    cols: Annotated[int, Meta(ge=1, le=4096), Scaled()]


class MathCycles(Section, frozen=True):
    """Cycles that the vector engine takes for a vector, by function."""

    add: VectorCycles
    sub: VectorCycles
    mul: VectorCycles
    fma: VectorCycles
    maximum: VectorCycles
    minimum: VectorCycles
    abs: VectorCycles
    relu: VectorCycles
    compare: VectorCycles
    bitwise: VectorCycles
    clamp: VectorCycles
    div: VectorCycles
    exp: VectorCycles
    log: VectorCycles
    sqrt: VectorCycles
    sin: VectorCycles
    cos: VectorCycles
    tanh: VectorCycles
    sigmoid: VectorCycles
    silu: VectorCycles
    gelu: VectorCycles
    exp2: VectorCycles
    log2: VectorCycles
    rsqrt: VectorCycles
    pow: VectorCycles
    erf: VectorCycles
    floor: VectorCycles
    ceil: VectorCycles
    round: VectorCycles
    where: VectorCycles
    sum: VectorCycles
    max: VectorCycles
    min: VectorCycles
    argmax: VectorCycles
    argmin: VectorCycles
    cumsum: VectorCycles
    cast: VectorCycles
    cat: VectorCycles
    trans: VectorCycles
    full: VectorCycles
    arange: VectorCycles


class MathEngine(Section, frozen=True):
    """The vector engine of a PE.

    A level of the tree that combines the lanes of a reduction takes `tree_level_cycles`. The values
    that a chain keeps are in `registers` of a vector each.
    """

    lanes: Count
    registers: Annotated[Count, among(4, 8, 32)]
    clock_ghz: Ghz
    pipeline_cycles: Annotated[int, Meta(ge=0, le=1 << 20), Scaled()]
    tree_level_cycles: Annotated[int, Meta(ge=0, le=1 << 20), Scaled()]
    cycles: MathCycles


class PeConfig(Section, frozen=True):
    """A processing element."""

    to_router_bw_gbs: Gbs
    cpu: CommandCpu
    scheduler: Scheduler
    mmu: Overhead
    dma: Dma
    ipcq: Overhead
    tcm_mb: Count
    tcm: Tcm
    tile: TileSides
    fetch_store: FetchStore
    gemm: GemmEngine
    math: MathEngine
