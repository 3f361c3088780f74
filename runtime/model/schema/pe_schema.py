"""The part of the schema of `topology.yaml` that describes a processing element, key `pe`."""

from typing import Annotated, Literal

from msgspec import Meta

from runtime.core.config.section import Section
from runtime.model.schema.draws import Scaled, among
from runtime.model.schema.meanings import WHAT_IF, ActsOn
from runtime.model.schema.quantities import Count, DelayNs, Gbs, Ghz, Ns, Overhead

TileSide = Annotated[int, Meta(ge=1, le=4096), among(16, 32, 64)]
# A clocked engine takes whole cycles; one that is faster for a function has more lanes.
VectorCycles = Annotated[int, Meta(ge=1, le=1 << 16), Scaled()]


class Dma(Section, frozen=True):
    """The DMA engine of a PE.

    At most `channels` requests, and at most `outstanding` packets that answer them, are in flight.
    A descriptor of a gather takes `gather_row_ns`.
    """

    overhead_ns: Annotated[DelayNs, ActsOn("start of a request"), WHAT_IF]
    gather_row_ns: Annotated[
        Ns, ActsOn("descriptor of a row of a gather: index, address, translation")
    ]
    channels: Annotated[int, Meta(ge=1, le=1024), among(1, 2, 8), ActsOn("requests in flight")]
    outstanding: Annotated[
        int,
        Meta(ge=1, le=65536),
        among(1, 3, 16),
        ActsOn("packets in flight to the engine, over all channels", unit="packets"),
    ]


class CommandCpu(Section, frozen=True):
    """The CPU of a PE: `overhead_ns` issues a command, `program_ns` begins a program of a grid."""

    overhead_ns: Annotated[DelayNs, ActsOn("issue of a command"), WHAT_IF]
    program_ns: Annotated[Ns, ActsOn("start of a program of a launch with grid=")]


class Tcm(Section, frozen=True):
    """Division of the tightly coupled memory, and its bandwidth."""

    bw_gbs: Annotated[Gbs, ActsOn("port of TCM to the networks"), WHAT_IF]
    scheduler_reserved_mb: Annotated[
        int, Meta(ge=0, le=1 << 20), Scaled(), ActsOn("part of TCM for the scheduler")
    ]
    kernel_scratch_mb: Annotated[Count, ActsOn("part of TCM for the values of a kernel")]
    collective_scratch_mb: Annotated[
        Count, ActsOn("part of TCM for the values of a collective's kernel")
    ]
    transfer_scratch_mb: Annotated[
        Count, ActsOn("part of TCM for the message that send and isend move")
    ]


class Scheduler(Section, frozen=True):
    """The scheduler of a PE.

    Its part of TCM has room for `tile_buffers` tiles of each operand and of the result.
    """

    overhead_ns: Annotated[DelayNs, ActsOn("dispatch of a command to an engine")]
    tile_buffers: Annotated[
        int,
        Meta(ge=1, le=1024),
        among(1, 2, 6),
        ActsOn("tiles of each operand and of the result in TCM"),
    ]


class TileSides(Section, frozen=True):
    """The largest step of the GEMM engine: (m, k) times (k, n)."""

    m: Annotated[TileSide, ActsOn("rows of a GEMM step")]
    k: Annotated[TileSide, ActsOn("depth of a GEMM step")]
    n: Annotated[TileSide, ActsOn("columns of a GEMM step")]


class FetchStore(Section, frozen=True):
    """The unit that moves data between TCM and registers; the bandwidth is per direction."""

    bw_gbs: Annotated[Gbs, ActsOn("each direction between TCM and registers"), WHAT_IF]


class GemmEngine(Section, frozen=True):
    """The matrix engine of a PE.

    `macs_per_cycle` belongs to the model `macs`, `rows` and `cols` to `systolic_os`.
    """

    model: Annotated[
        Literal["macs", "systolic_os"],
        ActsOn("macs: macs_per_cycle; systolic_os: an output-stationary array"),
    ]
    clock_ghz: Annotated[Ghz, ActsOn("clock of the GEMM engine"), WHAT_IF]
    macs_per_cycle: Annotated[
        Count, ActsOn("multiplications of the GEMM engine, for the model macs")
    ]
    rows: Annotated[
        int, Meta(ge=1, le=4096), Scaled(), ActsOn("rows of the array, for the model systolic_os")
    ]
    cols: Annotated[
        int,
        Meta(ge=1, le=4096),
        Scaled(),
        ActsOn("columns of the array, for the model systolic_os"),
    ]


class MathCycles(Section, frozen=True):
    """Cycles that the vector engine takes for a vector, by function."""

    add: Annotated[VectorCycles, ActsOn("addition")]
    sub: Annotated[VectorCycles, ActsOn("subtraction")]
    mul: Annotated[VectorCycles, ActsOn("product")]
    fma: Annotated[VectorCycles, ActsOn("product and sum")]
    maximum: Annotated[VectorCycles, ActsOn("larger of two operands")]
    minimum: Annotated[VectorCycles, ActsOn("smaller of two operands")]
    abs: Annotated[VectorCycles, ActsOn("absolute value")]
    relu: Annotated[VectorCycles, ActsOn("maximum with 0")]
    compare: Annotated[VectorCycles, ActsOn("==, !=, <, <=, >, >=")]
    bitwise: Annotated[VectorCycles, ActsOn("and, or, exclusive or")]
    clamp: Annotated[VectorCycles, ActsOn("maximum and minimum")]
    div: Annotated[VectorCycles, ActsOn("quotient")]
    exp: Annotated[VectorCycles, ActsOn("exponential")]
    log: Annotated[VectorCycles, ActsOn("natural logarithm")]
    sqrt: Annotated[VectorCycles, ActsOn("square root")]
    sin: Annotated[VectorCycles, ActsOn("sine")]
    cos: Annotated[VectorCycles, ActsOn("cosine")]
    tanh: Annotated[VectorCycles, ActsOn("hyperbolic tangent")]
    sigmoid: Annotated[VectorCycles, ActsOn("logistic function")]
    silu: Annotated[VectorCycles, ActsOn("product of x and its logistic function")]
    gelu: Annotated[VectorCycles, ActsOn("Gaussian error linear unit")]
    exp2: Annotated[VectorCycles, ActsOn("power of 2")]
    log2: Annotated[VectorCycles, ActsOn("logarithm to base 2")]
    rsqrt: Annotated[VectorCycles, ActsOn("reciprocal square root")]
    pow: Annotated[VectorCycles, ActsOn("power")]
    erf: Annotated[VectorCycles, ActsOn("error function")]
    floor: Annotated[VectorCycles, ActsOn("rounding down")]
    ceil: Annotated[VectorCycles, ActsOn("rounding up")]
    round: Annotated[VectorCycles, ActsOn("rounding to the nearest integer")]
    where: Annotated[VectorCycles, ActsOn("selection by a mask")]
    sum: Annotated[VectorCycles, ActsOn("a vector of a sum, before the tree")]
    max: Annotated[VectorCycles, ActsOn("a vector of a maximum, before the tree")]
    min: Annotated[VectorCycles, ActsOn("a vector of a minimum, before the tree")]
    argmax: Annotated[VectorCycles, ActsOn("a vector of the index of a maximum, before the tree")]
    argmin: Annotated[VectorCycles, ActsOn("a vector of the index of a minimum, before the tree")]
    cumsum: Annotated[
        VectorCycles, ActsOn("a vector of a running sum, behind the levels of its scan")
    ]
    cast: Annotated[VectorCycles, ActsOn("conversion of type")]
    cat: Annotated[VectorCycles, ActsOn("concatenation")]
    trans: Annotated[VectorCycles, ActsOn("transposition")]
    full: Annotated[VectorCycles, ActsOn("constant")]
    arange: Annotated[VectorCycles, ActsOn("consecutive integers")]


class MathEngine(Section, frozen=True):
    """The vector engine of a PE.

    A level of the tree that combines the lanes of a reduction takes `tree_level_cycles`. The values
    that a chain keeps are in `registers` of a vector each.
    """

    lanes: Annotated[Count, ActsOn("elements of a vector")]
    registers: Annotated[Count, among(4, 8, 32), ActsOn("vector registers for what a chain keeps")]
    clock_ghz: Annotated[Ghz, ActsOn("clock of the vector engine"), WHAT_IF]
    pipeline_cycles: Annotated[
        int, Meta(ge=0, le=1 << 20), Scaled(), ActsOn("fill of the pipeline")
    ]
    tree_level_cycles: Annotated[
        int,
        Meta(ge=0, le=1 << 20),
        Scaled(),
        ActsOn("a level of the tree that combines the lanes of a reduction"),
    ]
    cycles: MathCycles


class PeConfig(Section, frozen=True):
    """A processing element."""

    to_router_bw_gbs: Annotated[Gbs, ActsOn("link of a PE to its router"), WHAT_IF]
    cpu: CommandCpu
    scheduler: Scheduler
    mmu: Annotated[Overhead, ActsOn("a translation")]
    dma: Dma
    ipcq: Annotated[Overhead, ActsOn("handling of an arrival or a credit")]
    tcm_mb: Annotated[Count, ActsOn("TCM of a PE")]
    tcm: Tcm
    tile: TileSides
    fetch_store: FetchStore
    gemm: GemmEngine
    math: MathEngine
