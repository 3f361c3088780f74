"""The schema of `topology.yaml`: one frozen record per mapping; fields are the YAML keys.

Every key is required, so that no parameter of the model is hidden in code; exceptions are `w`, `h`,
`impl`, `launch_overhead_ns`, without which the host is ideal, and `copy_overhead_ns`, without which
a copy costs the host what a launch does. Units are part of the keys.
"""

from typing import Annotated, Literal

from msgspec import Meta

from runtime.core.section import Section
from runtime.model.cube_schema import CubeConfig
from runtime.model.draws import Fixed, Scaled, among
from runtime.model.pe_schema import PeConfig
from runtime.model.quantities import Count, Gbs, Ghz, GridSize, Mm, Ns, Overhead, Side
from runtime.model.tiles import TileSize

MIB = 1 << 20
GIB = 1 << 30

SipTopology = Literal["ring_1d", "torus_2d", "mesh_2d", "mesh_2d_no_wrap"]
NodeKind = Literal[
    "host",
    "pcie_ep",
    "io_cpu",
    "io_noc",
    "ucie",
    "m_cpu",
    "router",
    "xbar",
    "hbm_ctrl",
    "sram",
    "pe",
]

Implementation = Annotated[
    str,
    Meta(pattern=r"^([a-z][a-z0-9_]*|[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*)$"),
    Fixed("a class in place of the component's own; it has no reads in common with another core"),
]


class Sips(Section, frozen=True, kw_only=True):
    """The number of SIPs and the network between them."""

    count: Annotated[int, among(1, 2, 3, 4)]
    topology: SipTopology
    w: Annotated[GridSize | None, among(None, 1, 2, 4)] = None
    h: Annotated[GridSize | None, among(None, 1, 2, 4)] = None
    fabric: Literal["direct", "switch"]
    spacing_mm: Mm


class SystemComponents(Section, frozen=True):
    """Components between the SIPs."""

    switch: Overhead


class System(Section, frozen=True):
    """The SIPs and their network."""

    sips: Sips
    components: SystemComponents


class Ucie(Section, frozen=True):
    """Every UCIe port: between cubes, to the IO chiplet and between SIPs."""

    overhead_ns: Ns
    bw_gbs: Gbs


class Xbar(Section, frozen=True):
    """The crossbar between a router, its PE and its HBM controller."""

    overhead_ns: Ns
    to_hbm_bw_gbs: Gbs


class HbmBanks(Section, frozen=True):
    """The banks of a pseudo channel, for model `banks`; the timings are those of JEDEC."""

    count: Annotated[int, Meta(ge=1, le=1024), among(1, 2, 4, 16)]
    row_bytes: Annotated[int, Meta(ge=8, le=1 << 20), among(512, 1024, 2048)]
    t_rcd_ns: Ns
    t_rp_ns: Ns
    t_ras_ns: Ns
    t_cl_ns: Ns
    t_rrd_ns: Ns
    t_faw_ns: Ns
    t_refi_ns: Annotated[Ns, among(0.0, 700.0, 3900.0)]
    t_rfc_ns: Ns
    controller_ns: Ns


class Hbm(Section, frozen=True):
    """One HBM slice: there is one per PE."""

    burst_bytes: Annotated[int, Meta(ge=8, le=1 << 20), among(64, 128, 256, 512)]
    num_pcs: Annotated[int, Meta(ge=1, le=1024), among(1, 4, 8, 16)]
    pc_bw_gbs: Gbs
    slice_gib: Count
    model: Literal["channels", "banks"]
    banks: HbmBanks


class HostConfig(Section, frozen=True):
    """The host of a SIP: its overhead on the return path, the time that it needs for each command,
    which may be another one for copies, and for each element of an operator of PyTorch that runs on
    the host.
    """

    overhead_ns: Ns
    launch_overhead_ns: Ns = 0.0
    copy_overhead_ns: Annotated[Ns | None, Scaled(zero_to=50.0)] = None
    fallback_ns_per_element: Ns = 1.0

    @property
    def of_a_copy_ns(self) -> float:
        """The time that the host needs for a copy."""
        return self.launch_overhead_ns if self.copy_overhead_ns is None else self.copy_overhead_ns


class NocConfig(Section, frozen=True):
    """Flow control of the networks of a SIP; all keys but the first belong to `credits`."""

    flow_control: Literal["unlimited", "credits"]
    vcs: Annotated[int, Meta(ge=1, le=64), among(1, 2, 4, 8)]
    buffer_flits: Annotated[int, Meta(ge=1, le=1 << 16), among(2, 8, 16)]
    router_stages: Annotated[int, Meta(ge=1, le=4), among(1, 2, 3, 4)]
    flit_bytes: Annotated[int, Meta(ge=1, le=MIB), among(64, 128, 256)]
    clock_ghz: Ghz


class Grid(Section, frozen=True):
    """Columns and rows."""

    w: GridSize
    h: GridSize


class PcieEp(Section, frozen=True):
    """The PCIe endpoint and its link to the host."""

    overhead_ns: Ns
    bw_gbs: Gbs


class IoCpuConfig(Section, frozen=True):
    """The CPU of the IO chiplet."""

    overhead_ns: Ns
    bw_gbs: Gbs
    launch_margin_ns: Ns


class IoNoc(Section, frozen=True):
    """The network of the IO chiplet."""

    overhead_ns: Ns
    bw_gbs: Gbs


class IoChiplet(Section, frozen=True):
    """The chiplet that joins the cube mesh to the host and to other SIPs."""

    edge: Side
    gap_mm: Mm
    pcie_ep: PcieEp
    io_cpu: IoCpuConfig
    noc: IoNoc


class Sip(Section, frozen=True):
    """One package: a mesh of cubes and an IO chiplet."""

    cube_mesh: Grid
    cube_gap_mm: Mm
    io_chiplet: IoChiplet


class Implementations(Section, frozen=True):
    """The class of each kind of component: a registry key, by default the kind, or `module:Class`.

    Endpoints of packets and the engines of a PE are components with a class. Nodes that packets
    pass (`router`, `xbar`, `ucie`, `pcie_ep`, `io_noc`, `switch`) are part of the fabric: their
    class is that of their outgoing links.
    """

    host: Implementation = "host"
    pcie_ep: Implementation = "pcie_ep"
    io_cpu: Implementation = "io_cpu"
    io_noc: Implementation = "io_noc"
    switch: Implementation = "switch"
    ucie: Implementation = "ucie"
    m_cpu: Implementation = "m_cpu"
    router: Implementation = "router"
    xbar: Implementation = "xbar"
    hbm_ctrl: Implementation = "hbm_ctrl"
    sram: Implementation = "sram"
    pe: Implementation = "pe"
    pe_cpu: Implementation = "pe_cpu"
    pe_dma: Implementation = "pe_dma"
    pe_fetch_store: Implementation = "pe_fetch_store"
    pe_gemm: Implementation = "pe_gemm"
    pe_ipcq: Implementation = "pe_ipcq"
    pe_math: Implementation = "pe_math"
    pe_mmu: Implementation = "pe_mmu"
    pe_scheduler: Implementation = "pe_scheduler"
    pe_tcm: Implementation = "pe_tcm"

    def of(self, kind: str) -> str:
        """The implementation of one kind of component."""
        implementation: str = getattr(self, kind)
        return implementation


class Topology(Section, frozen=True):
    """The whole file, checked; values that follow from several keys are properties."""

    ns_per_mm: Annotated[float, Meta(ge=0, le=1e3), Scaled()]
    packet_bytes: Annotated[int, Meta(ge=1, le=GIB), among(256, 1024, 4096)]
    control_bytes: Annotated[int, Meta(ge=1, le=MIB), Scaled()]
    system: System
    ucie: Ucie
    xbar: Xbar
    hbm: Hbm
    host: HostConfig
    noc: NocConfig
    sip: Sip
    cube: CubeConfig
    pe: PeConfig
    impl: Implementations = Implementations()

    @property
    def sips(self) -> int:
        """SIPs of the system."""
        return self.system.sips.count

    @property
    def sip_grid(self) -> tuple[int, int]:
        """Columns and rows of the SIPs; a ring is one row. SIP = row * columns + column."""
        sips = self.system.sips
        if sips.topology == "ring_1d":
            # A grid of one row, so that routes need one rule only.
            return sips.count, 1
        if sips.w is not None and sips.h is not None:
            return sips.w, sips.h
        side = round(sips.count**0.5)
        return side, side

    @property
    def cubes(self) -> int:
        """Cubes of a SIP. Cube = row * columns + column."""
        return self.sip.cube_mesh.w * self.sip.cube_mesh.h

    @property
    def pes_per_cube(self) -> int:
        """PEs of a cube."""
        return len(self.cube.pe_layout.corners) * self.cube.pe_layout.pe_per_corner

    @property
    def port_buffer_bytes(self) -> int:
        """The buffer of a component for the packets of a virtual network, with credits.

        As much as an input of a router has for it, at least two packets: one arrives while another
        is served.
        """
        buffer_bytes = self.noc.vcs * self.noc.buffer_flits * self.noc.flit_bytes
        return max(buffer_bytes, 2 * self.packet_bytes)

    @property
    def hbm_slice_bytes(self) -> int:
        """Size of the HBM slice of a PE."""
        return self.hbm.slice_gib * GIB

    @property
    def sram_bytes(self) -> int:
        """Size of the SRAM of a cube."""
        return self.cube.sram_mb * MIB

    @property
    def tcm_bytes(self) -> int:
        """Size of the TCM of a PE."""
        return self.pe.tcm_mb * MIB

    @property
    def scheduler_reserved_bytes(self) -> int:
        """The part of a PE's TCM for its scheduler."""
        return self.pe.tcm.scheduler_reserved_mb * MIB

    @property
    def tile(self) -> TileSize:
        """The largest step of the GEMM engine."""
        return TileSize(self.pe.tile.m, self.pe.tile.k, self.pe.tile.n)

    @property
    def kernel_scratch_bytes(self) -> int:
        """The part of a PE's TCM for the temporaries of a kernel."""
        return self.pe.tcm.kernel_scratch_mb * MIB

    @property
    def collective_scratch_bytes(self) -> int:
        """The part of a PE's TCM for the temporaries of a collective's kernel."""
        return self.pe.tcm.collective_scratch_mb * MIB

    @property
    def transfer_scratch_bytes(self) -> int:
        """The part of a PE's TCM for the message that it sends to another rank."""
        return self.pe.tcm.transfer_scratch_mb * MIB
