"""The properties of a SIP, computed from the topology of the run."""

from collections.abc import Mapping
from dataclasses import dataclass

from runtime.core.simtime import exact
from runtime.device.rank.rank_state import running_rank
from runtime.model.schema.topology_schema import Topology
from runtime.model.tiles import TileSize


@dataclass(frozen=True)
class DeviceProperties:
    """The properties of a SIP, computed from the topology file.

    `cubes` and `pes_per_cube` count those that are not down; the rates are those of the file, for
    all PEs. `hbm_gbs_per_pe` is the bandwidth between a PE and its own HBM slice for large blocks.
    `peak_gemm_tflops_per_pe` is the peak rate of its GEMM engine on full tiles, with two operations
    per multiply-add. The vector engine takes a vector of `vector_lanes` elements every
    `vector_cycles[function]` cycles of `vector_clock_ghz`.
    """

    name: str
    cubes: int
    pes_per_cube: int
    total_memory_bytes: int
    hbm_bytes_per_pe: int
    hbm_gbs_per_pe: float
    tcm_bytes_per_pe: int
    kernel_scratch_bytes_per_pe: int
    gemm_tile: TileSize
    peak_gemm_tflops_per_pe: float
    vector_lanes: int
    vector_clock_ghz: float
    vector_cycles: Mapping[str, int]

    @property
    def pe_count(self) -> int:
        """The number of PEs in all cubes."""
        return self.cubes * self.pes_per_cube


def get_device_properties(device: int | None = None) -> DeviceProperties:
    """The properties of a SIP; all have those of the SIP of this rank. `RuntimeError` if it does
    not exist.
    """
    state = running_rank()
    topology, pes = state.topology, state.pes
    if device is not None and not 0 <= device < topology.sips:
        raise RuntimeError(
            f"invalid device ordinal {device}: there are {topology.sips} SIPs, from 0 on"
        )
    pe = topology.pe
    return DeviceProperties(
        name="ahbm",
        cubes=pes.cubes,
        pes_per_cube=pes.per_cube,
        total_memory_bytes=pes.cubes * pes.per_cube * topology.hbm_slice_bytes,
        hbm_bytes_per_pe=topology.hbm_slice_bytes,
        hbm_gbs_per_pe=_hbm_gbs(topology),
        tcm_bytes_per_pe=topology.tcm_bytes,
        kernel_scratch_bytes_per_pe=topology.kernel_scratch_bytes,
        gemm_tile=TileSize(pe.tile.m, pe.tile.k, pe.tile.n),
        peak_gemm_tflops_per_pe=_peak_gemm_tflops(topology),
        vector_lanes=pe.math.lanes,
        vector_clock_ghz=pe.math.clock_ghz,
        vector_cycles=pe.math.cycles.values(),
    )


def _hbm_gbs(topology: Topology) -> float:
    """The lowest bandwidth on the path: slice, crossbar or TCM."""
    slice_gbs = exact(topology.hbm.pc_bw_gbs) * topology.hbm.num_pcs
    if topology.hbm.model == "channels":
        slice_gbs *= exact(topology.cube.hbm_ctrl.efficiency)
    return min(float(slice_gbs), topology.xbar.to_hbm_bw_gbs, topology.pe.tcm.bw_gbs)


def _peak_gemm_tflops(topology: Topology) -> float:
    gemm = topology.pe.gemm
    macs_per_cycle = gemm.rows * gemm.cols if gemm.model == "systolic_os" else gemm.macs_per_cycle
    return float(2 * macs_per_cycle * exact(gemm.clock_ghz) / 1000)
