"""The part of the schema of `topology.yaml` that describes a processing element, key `pe`."""

from typing import Annotated, Literal

from pydantic import Field

from runtime.core.config_file import Section
from runtime.model.quantities import Count, Gbs, Ghz, Ns, Overhead

TileSide = Annotated[int, Field(ge=1, le=4096)]


class Dma(Section):
    """The DMA engine of a PE; at most `channels` requests are outstanding."""

    overhead_ns: Ns
    channels: Annotated[int, Field(ge=1, le=1024)]


class Tcm(Section):
    """How the tightly coupled memory is divided, and its bandwidth."""

    bw_gbs: Gbs
    scheduler_reserved_mb: Annotated[int, Field(ge=0, le=1 << 20)]
    kernel_scratch_mb: Count
    collective_scratch_mb: Count
    transfer_scratch_mb: Count


class Scheduler(Section):
    """The scheduler of a PE.

    Its part of TCM has room for `tile_buffers` tiles of each operand and of the result.
    """

    overhead_ns: Ns
    tile_buffers: Annotated[int, Field(ge=1, le=1024)]


class TileSides(Section):
    """The largest step of the GEMM engine: (m, k) times (k, n)."""

    m: TileSide
    k: TileSide
    n: TileSide


class FetchStore(Section):
    """The unit that moves data between TCM and registers; the bandwidth is per direction."""

    bw_gbs: Gbs


class GemmEngine(Section):
    """The matrix engine of a PE.

    `macs_per_cycle` belongs to the model `macs`, `rows` and `cols` to `systolic_os`.
    """

    model: Literal["macs", "systolic_os"]
    clock_ghz: Ghz
    macs_per_cycle: Count
    rows: Annotated[int, Field(ge=1, le=4096)]
    cols: Annotated[int, Field(ge=1, le=4096)]


class MathEngine(Section):
    """The vector engine of a PE."""

    lanes: Count
    clock_ghz: Ghz
    pipeline_cycles: Annotated[int, Field(ge=0, le=1 << 20)]


class PeConfig(Section):
    """A processing element."""

    to_router_bw_gbs: Gbs
    cpu: Overhead
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
