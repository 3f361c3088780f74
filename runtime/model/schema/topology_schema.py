"""The schema of `topology.yaml`: one frozen record per mapping; fields are the YAML keys.

A key is declared once: its type with the unit and the bounds, its default, its range for random
machines and what it acts on. `runtime.model.keys` reads the declarations; the random machines of
the tests, `validate`, the what-if of `why`, `kernbench keys`, the table of docs/keys.md and the
comments of `topology.yaml` follow from them.

Every key of version 1 is required, so that no parameter of the model is hidden in code; exceptions
are `version`, `w`, `h`, `impl`, `launch_overhead_ns`, without which the host is ideal,
`copy_overhead_ns`, without which a copy costs the host what a launch does,
`fallback_ns_per_element`, `fallback_overhead_ns`, without which calls of operators on the host
cost nothing, and `jitter`, without which nothing is late. A key that is added later states the
version of the schema that adds it and has a default that changes nothing, so that files of users
stay valid.
"""

from fractions import Fraction
from typing import Annotated, Any, Literal

from msgspec import Meta

from runtime.core.config.section import NewestVersion, Section
from runtime.core.simtime import exact
from runtime.model.schema.cube_schema import CubeConfig
from runtime.model.schema.draws import Fixed, Scaled, among
from runtime.model.schema.hbm_schema import Hbm
from runtime.model.schema.jitter_schema import JitterConfig
from runtime.model.schema.meanings import WHAT_IF, ActsOn
from runtime.model.schema.pe_schema import PeConfig
from runtime.model.schema.quantities import DelayNs, Gbs, Ghz, GridSize, Mm, Ns, Overhead, Side
from runtime.model.tiles import TileSize

VERSION = 1
"""The version of the schema: a release which adds keys increases it."""
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

PartKind = NodeKind | Literal["sip_port"]
"""A kind of component with numbers of its own; ports to other SIPs are in no graph of a SIP."""
PartValue = float | bool
"""A number of a part of the machine, or whether it is down."""
Overrides = dict[str, dict[str, PartValue]]

Implementation = Annotated[
    str,
    Meta(pattern=r"^([a-z][a-z0-9_]*|[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*)$"),
    Fixed("a class in place of the component's own; it has no reads in common with another core"),
    ActsOn("class of the component: a name of the registry, or module:Class"),
]


class Sips(Section, frozen=True, kw_only=True):
    """The number of SIPs and the network between them."""

    count: Annotated[int, among(1, 2, 3, 4), ActsOn("SIPs; --sips N overrides it")]
    topology: Annotated[
        SipTopology,
        ActsOn("ring_1d, torus_2d, mesh_2d (wraps) or mesh_2d_no_wrap"),
    ]
    w: Annotated[
        GridSize | None,
        among(None, 1, 2, 4),
        ActsOn("columns of a 2-D topology; null: square root of count"),
    ] = None
    h: Annotated[
        GridSize | None,
        among(None, 1, 2, 4),
        ActsOn("rows of a 2-D topology; null: square root of count"),
    ] = None
    fabric: Annotated[
        Literal["direct", "switch"], ActsOn("direct: a UCIe link to each neighbour; switch: a star")
    ]
    spacing_mm: Annotated[
        Mm, ActsOn("wire between the ports of two SIPs, or of a SIP and the switch")
    ]


class SystemComponents(Section, frozen=True):
    """Components between the SIPs."""

    switch: Annotated[Overhead, ActsOn("a crossing of the switch")]


class System(Section, frozen=True):
    """The SIPs and their network."""

    sips: Sips
    components: SystemComponents


class Ucie(Section, frozen=True):
    """Every UCIe port: between cubes, to the IO chiplet and between SIPs."""

    overhead_ns: Annotated[DelayNs, ActsOn("a port; a crossing has two"), WHAT_IF]
    bw_gbs: Annotated[Gbs, ActsOn("each direction of a UCIe link"), WHAT_IF]


class Xbar(Section, frozen=True):
    """The crossbar between a router, its PE and its HBM controller."""

    overhead_ns: Annotated[
        DelayNs, ActsOn("crossbar between a router, its PE and its HBM controller")
    ]
    to_hbm_bw_gbs: Annotated[Gbs, ActsOn("each direction of a link of the crossbar")]


class HostConfig(Section, frozen=True):
    """The host of a SIP: its overhead on the return path, the time that it needs for each command,
    which may be another one for copies, and for each call and each element of an operator of
    PyTorch that runs on the host.
    """

    overhead_ns: Annotated[DelayNs, ActsOn("an answer on its way back")]
    launch_overhead_ns: Annotated[
        Ns, ActsOn("a command on its way out, one after another; 0: an ideal host"), WHAT_IF
    ] = 0.0
    copy_overhead_ns: Annotated[
        Ns | None, Scaled(zero_to=50.0), ActsOn("a copy on its way out; null: launch_overhead_ns")
    ] = None
    fallback_ns_per_element: Annotated[
        Ns, ActsOn("operators of PyTorch on the host: operands and results")
    ] = 1.0
    fallback_overhead_ns: Annotated[
        Ns, Scaled(zero_to=5000.0), ActsOn("operators of PyTorch on the host: a call of any size")
    ] = 0.0

    @property
    def of_a_copy_ns(self) -> float:
        """The time that the host needs for a copy."""
        return self.launch_overhead_ns if self.copy_overhead_ns is None else self.copy_overhead_ns

    def of_an_operator_ns(self, elements: int) -> Fraction:
        """The time that the host needs for a call of an operator of a number of elements."""
        return exact(self.fallback_overhead_ns) + exact(self.fallback_ns_per_element) * elements


class NocConfig(Section, frozen=True):
    """Flow control of the networks of a SIP; all keys but the first belong to `credits`."""

    flow_control: Annotated[
        Literal["unlimited", "credits"],
        ActsOn("unlimited: links with calendars; credits: routers with keys of noc"),
    ]
    vcs: Annotated[
        int,
        Meta(ge=1, le=64),
        among(1, 2, 4, 8),
        ActsOn("virtual channels of each virtual network of a link"),
    ]
    buffer_flits: Annotated[
        int,
        Meta(ge=1, le=1 << 16),
        among(2, 8, 16),
        ActsOn("buffer of a virtual channel; more behind a longer or slower link"),
    ]
    router_stages: Annotated[
        int,
        Meta(ge=1, le=4),
        among(1, 2, 3, 4),
        ActsOn("cycles in a router, 1 to 4; replaces cube.noc.router_overhead_ns", unit="cycles"),
    ]
    flit_bytes: Annotated[int, Meta(ge=1, le=MIB), among(64, 128, 256), ActsOn("a flit")]
    clock_ghz: Annotated[Ghz, ActsOn("clock of the routers")]


class Grid(Section, frozen=True):
    """Columns and rows."""

    w: Annotated[GridSize, ActsOn("columns of cubes")]
    h: Annotated[GridSize, ActsOn("rows of cubes")]


class PcieEp(Section, frozen=True):
    """The PCIe endpoint and its link to the host."""

    overhead_ns: Annotated[DelayNs, ActsOn("PCIe endpoint"), WHAT_IF]
    bw_gbs: Annotated[Gbs, ActsOn("each direction of the PCIe link"), WHAT_IF]


class IoCpuConfig(Section, frozen=True):
    """The CPU of the IO chiplet."""

    overhead_ns: Annotated[DelayNs, ActsOn("CPU of the IO chiplet")]
    bw_gbs: Annotated[Gbs, ActsOn("link between the PCIe endpoint and the CPU of the IO chiplet")]
    launch_margin_ns: Annotated[
        Ns, ActsOn("added to the longest latency to a PE for a common start time"), WHAT_IF
    ]


class IoNoc(Section, frozen=True):
    """The network of the IO chiplet."""

    overhead_ns: Annotated[DelayNs, ActsOn("network of the IO chiplet")]
    bw_gbs: Annotated[Gbs, ActsOn("link between the CPU and the network of the IO chiplet")]


class IoChiplet(Section, frozen=True):
    """The chiplet that joins the cube mesh to the host and to other SIPs."""

    edge: Annotated[
        Side, ActsOn("side of the cube mesh (N, E, S, W); a UCIe port per column or row")
    ]
    gap_mm: Annotated[Mm, ActsOn("wire between the IO chiplet and a cube")]
    pcie_ep: PcieEp
    io_cpu: IoCpuConfig
    noc: IoNoc


class Sip(Section, frozen=True):
    """One package: a mesh of cubes and an IO chiplet."""

    cube_mesh: Grid
    cube_gap_mm: Annotated[Mm, ActsOn("wire of a UCIe crossing between neighbouring cubes")]
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

    ns_per_mm: Annotated[float, Meta(ge=0, le=1e3), Scaled(), ActsOn("delay of a wire")]
    packet_bytes: Annotated[
        int,
        Meta(ge=1, le=GIB),
        among(256, 1024, 4096),
        ActsOn("packets into which larger transfers are divided"),
    ]
    control_bytes: Annotated[
        int,
        Meta(ge=1, le=MIB),
        Scaled(),
        ActsOn("a request, an acknowledgement or a completion without data"),
    ]
    system: System
    ucie: Ucie
    xbar: Xbar
    hbm: Hbm
    host: HostConfig
    noc: NocConfig
    sip: Sip
    cube: CubeConfig
    pe: PeConfig
    jitter: JitterConfig = JitterConfig()
    impl: Implementations = Implementations()
    overrides: Overrides = {}  # noqa: RUF012 - msgspec copies the default of a field
    version: Annotated[
        int,
        Meta(ge=1),
        NewestVersion(VERSION),
        Fixed("describes the file, not the machine"),
        ActsOn("version of the schema for which the file is written"),
    ] = VERSION

    def values(self) -> dict[str, Any]:
        """The keys and values as in a file; without `overrides` where there are none."""
        values = super().values()
        # So a uniform machine has the hash which it has without this key.
        if not self.overrides:
            del values["overrides"]
        return values

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
