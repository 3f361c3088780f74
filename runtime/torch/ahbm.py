"""`torch.ahbm`: the device of a rank, which is the SIP with the number of the rank."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from runtime.core.simtime import exact
from runtime.device.rank.rank_state import running_rank
from runtime.device.streams.device import check_device
from runtime.device.streams.events import Event
from runtime.device.streams.memory_statistics import (
    empty_cache,
    max_memory_allocated,
    memory_allocated,
    memory_reserved,
    reset_peak_memory_stats,
)
from runtime.device.streams.profiler import profile
from runtime.device.streams.streams import (
    Stream,
    current_stream,
    default_stream,
    set_stream,
    stream,
)
from runtime.model.schema.topology_schema import Topology
from runtime.model.tiles import TileSize
from runtime.torch.absent import absent_attribute

__all__ = [
    "DeviceProperties",
    "Event",
    "Stream",
    "cube_count",
    "current_device",
    "current_stream",
    "default_stream",
    "device_count",
    "elapsed_ps",
    "empty_cache",
    "get_device_properties",
    "has_data",
    "is_available",
    "max_memory_allocated",
    "memory_allocated",
    "memory_reserved",
    "now_ns",
    "profile",
    "reset_peak_memory_stats",
    "set_device",
    "set_stream",
    "stream",
    "synchronize",
]


@dataclass(frozen=True)
class DeviceProperties:
    """The properties of a SIP, computed from the topology file.

    `hbm_gbs_per_pe` is the bandwidth between a PE and its own HBM slice for large blocks.
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


def is_available() -> bool:
    """True: every rank has a device."""
    return True


def set_device(device: object) -> None:
    """Select the SIP of this rank, by its number, as "ahbm:1" or as `torch.device`; `RuntimeError`
    for another one, which a rank cannot access.
    """
    check_device("set_device", device)


def current_device() -> int:
    """The SIP of this rank."""
    return running_rank().rank


def device_count() -> int:
    """The number of SIPs in the system."""
    return running_rank().topology.sips


def get_device_properties(device: int | None = None) -> DeviceProperties:
    """The properties of a SIP, by default of this rank's; all SIPs are equal. `RuntimeError` if it
    does not exist.
    """
    topology = running_rank().topology
    if device is not None and not 0 <= device < topology.sips:
        raise RuntimeError(
            f"invalid device ordinal {device}: there are {topology.sips} SIPs, from 0 on"
        )
    pe = topology.pe
    return DeviceProperties(
        name="ahbm",
        cubes=topology.cubes,
        pes_per_cube=topology.pes_per_cube,
        total_memory_bytes=topology.cubes * topology.pes_per_cube * topology.hbm_slice_bytes,
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


def synchronize(device: object = None) -> None:
    """Wait in simulated time until all commands of all streams of this rank are complete.
    `RuntimeError` for the device of another rank.
    """
    check_device("synchronize", device)
    running_rank().device.synchronize()


def elapsed_ps() -> int:
    """The simulated time of this rank in picoseconds."""
    return running_rank().device.now_ps


def now_ns() -> float:
    """The simulated time of this rank in nanoseconds."""
    return elapsed_ps() / 1000


def cube_count() -> int:
    """The number of cubes in a SIP."""
    return running_rank().topology.cubes


def has_data() -> bool:
    """Whether the tensors of this run have elements; False with `--no-data`."""
    return running_rank().data


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


if not TYPE_CHECKING:
    # With this function in sight, a type checker would accept every attribute.
    def __getattr__(name: str) -> NoReturn:
        raise absent_attribute("torch.ahbm", name, __all__)
