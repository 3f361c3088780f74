"""The least time that a product can take on one PE, from the numbers of the topology file alone.

Every engine of the PE is a server, and no engine can be done before it has served everything: the GEMM engine all steps, the
ports of TCM and the memory all bytes. Loading an operand to TCM ends before the product starts, so its time comes on top:

    bound = bytes loaded / memory + max(steps * tile, bytes streamed / memory, bytes fetched / port, bytes stored / port)

Filling and draining the pipeline is not in it: what a measurement has above the bound is that, and stalls.
"""

from fractions import Fraction
from math import floor, prod

from msgspec import Struct

from kernbench.studies.milestone_1h_gemm.shapes import DTYPE, Shape, Staging
from runtime.core.simtime import PS_PER_NS
from runtime.model.schema import Topology
from runtime.model.tiles import TilePlan, TileSize


class Hardware(Struct, frozen=True, forbid_unknown_fields=True):
    """The numbers of the topology file on which the bounds rest.

    `memory_gbs` is what a PE can move from and to its own HBM slice together: the slice's channels times their efficiency, or
    the port of TCM if that is narrower. `link_gbs` is the crossbar between them, in each direction; `port_gbs` is TCM to
    registers and, separately, back.
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
    def of(cls, topology: Topology) -> "Hardware":
        """What of a topology file matters here."""
        pe, hbm = topology.pe, topology.hbm
        slice_gbs = (
            Fraction(str(hbm.pc_bw_gbs))
            * hbm.num_pcs
            * Fraction(str(topology.cube.hbm_ctrl.efficiency))
        )
        return cls(
            *(pe.tile.m, pe.tile.k, pe.tile.n),
            *(pe.gemm.model, pe.gemm.macs_per_cycle, pe.gemm.rows, pe.gemm.cols, pe.gemm.clock_ghz),
            *(
                min(float(slice_gbs), pe.tcm.bw_gbs),
                topology.xbar.to_hbm_bw_gbs,
                pe.fetch_store.bw_gbs,
            ),
            topology.kernel_scratch_bytes,
        )

    @property
    def tile(self) -> TileSize:
        """The full tile of the GEMM engine."""
        return TileSize(self.tile_m, self.tile_k, self.tile_n)

    @property
    def peak_macs_per_cycle(self) -> int:
        """What the GEMM engine can do at best: its lanes, or one multiplication a cycle in every cell of a systolic array."""
        return (
            self.array_rows * self.array_cols
            if self.gemm_model == "systolic_os"
            else self.macs_per_cycle
        )

    @property
    def peak_tflops(self) -> float:
        """Two operations for each multiplication, at the peak."""
        return 2 * self.peak_macs_per_cycle * self.clock_ghz / 1000

    def utilisation(self, macs: int, time_ps: int) -> float:
        """Share of the peak that `macs` multiplications in `time_ps` are."""
        return float(
            macs * PS_PER_NS / (self.peak_macs_per_cycle * Fraction(str(self.clock_ghz)) * time_ps)
        )


class Theory(Struct, frozen=True, forbid_unknown_fields=True):
    """The bounds of one product, in picoseconds and rounded down.

    `load_ps` is the memory's time for what is loaded, `stream_ps` for what is streamed in and out, `memory_ps` for both;
    `compute_ps`, `fetch_ps` and `store_ps` are those of the engines. `binds` is the largest of what the product itself needs.
    """

    compute_ps: int
    memory_ps: int
    load_ps: int
    stream_ps: int
    fetch_ps: int
    store_ps: int
    bound_ps: int
    binds: str


def bounds(hardware: Hardware, shape: Shape, staging: Staging) -> Theory:
    """The bounds of a product whose streamed operands are read again in every step, without reuse."""
    plan = shape.plan(hardware.tile)
    fetched_a = shape.m * shape.k * _across(shape.n, hardware.tile_n)
    fetched_b = shape.k * shape.n * _across(shape.m, hardware.tile_m)
    result = shape.m * shape.n
    streamed = (0 if staging.loads_a else fetched_a) + (0 if staging.loads_b else fetched_b)
    load = _memory(hardware, staging.loaded_bytes(shape) // DTYPE.itemsize, 0)
    stream = _memory(hardware, streamed, result)
    product = {
        "compute": _computing(hardware, plan),
        "memory": stream,
        "fetch": _moving(fetched_a + fetched_b, hardware.port_gbs),
        "store": _moving(result, hardware.port_gbs),
    }
    binds = max(product, key=product.__getitem__)
    return Theory(
        compute_ps=floor(product["compute"]),
        memory_ps=floor(load + stream),
        load_ps=floor(load),
        stream_ps=floor(stream),
        fetch_ps=floor(product["fetch"]),
        store_ps=floor(product["store"]),
        bound_ps=floor(load + product[binds]),
        binds=binds,
    )


def padding_utilisation(hardware: Hardware, plan: TilePlan) -> float:
    """The share of the peak that padding leaves.

    Model `macs` takes as long for a tile that is not full as for a full one, a systolic array for a row or column of cells that
    has nothing to do.
    """
    if hardware.gemm_model == "systolic_os":
        return (
            plan.m
            * plan.n
            / (_array_passes(hardware, plan) * hardware.array_rows * hardware.array_cols)
        )
    return plan.padding_utilisation


def _computing(hardware: Hardware, plan: TilePlan) -> Fraction:
    """Picoseconds of the GEMM engine: whole tiles in model `macs`; the depth and R + C - 2 cycles for each pass of an array."""
    if hardware.gemm_model == "systolic_os":
        cycles = _array_passes(hardware, plan) * (
            plan.k + hardware.array_rows + hardware.array_cols - 2
        )
    else:
        cycles = plan.tiles * _across(prod(plan.tile), hardware.macs_per_cycle)
    return Fraction(cycles * PS_PER_NS) / Fraction(str(hardware.clock_ghz))


def _memory(hardware: Hardware, read: int, written: int) -> Fraction:
    """Picoseconds of the memory and of the way there, which has a link for each direction."""
    return max(
        _moving(read + written, hardware.memory_gbs), _moving(max(read, written), hardware.link_gbs)
    )


def _moving(elements: int, bw_gbs: float) -> Fraction:
    return Fraction(elements * DTYPE.itemsize * PS_PER_NS) / Fraction(str(bw_gbs))


def _across(length: int, step: int) -> int:
    return -(-length // step)


def _array_passes(hardware: Hardware, plan: TilePlan) -> int:
    """How often an array that keeps its outputs starts anew: for each R x C outputs of a tile."""
    return _passes(plan.m, plan.tile.m, hardware.array_rows) * _passes(
        plan.n, plan.tile.n, hardware.array_cols
    )


def _passes(length: int, tile: int, array: int) -> int:
    """The same along one side."""
    full, rest = divmod(length, tile)
    return full * _across(tile, array) + _across(rest, array)
