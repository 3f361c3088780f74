"""Routes through a system as lists of hops, each hop given by keys of the topology file.

A hop is what a packet pays to enter a component: the wire to it, its overhead, and the bandwidth of
the link. The pieces below join to routes with `+`; `floor_plan` joins them between two components.
"""

from dataclasses import dataclass, field
from typing import Literal

EndKind = Literal["host", "io_cpu", "io_noc", "m_cpu", "pe", "hbm", "sram"]


@dataclass(frozen=True, slots=True)
class RouteEnd:
    """A component of a SIP at which routes begin and end; `pe` includes the TCM of the PE.

    `cube` is -1 on the IO chiplet, `pe` is -1 for what belongs to a whole cube.
    """

    kind: EndKind
    sip: int = 0
    cube: int = -1
    pe: int = -1

    @property
    def name(self) -> str:
        """The name of the component in its SIP."""
        match self.kind:
            case "host":
                return "host"
            case "io_cpu" | "io_noc":
                return f"io.{self.kind}"
            case "m_cpu" | "sram":
                return f"cube{self.cube}.{self.kind}"
            case "pe":
                return f"cube{self.cube}.pe{self.pe}"
            case "hbm":
                return f"cube{self.cube}.pe{self.pe}.hbm_ctrl"


@dataclass(frozen=True)
class KeyedHop:
    """A hop of a route. Each field is a key path of the topology file or a literal number.

    `node` names the component that is entered, in its SIP `sip`; it is empty in the pieces of this
    module that fit several places. Hops with equal keys are equal, wherever they are.
    """

    mm: str
    overhead_ns: str
    gbs: str = ""
    """Empty where the link does not serialise: no bandwidth limit."""
    node: str = field(default="", compare=False)
    sip: int = field(default=0, compare=False)

    def at(self, node: str, sip: int = 0) -> "KeyedHop":
        """The same hop into a component."""
        return KeyedHop(self.mm, self.overhead_ns, self.gbs, node, sip)


Route = tuple[KeyedHop, ...]


def into(route: Route, *nodes: str) -> Route:
    """The hops of a route into the components with these names."""
    return tuple(hop.at(node) for hop, node in zip(route, nodes, strict=True))


def link_gbs(name: str) -> str:
    """The key of the bandwidth of the link `a->b`; of any other name that of UCIe ports."""
    kinds = (end.split(".") for end in name.split("->"))
    # cube0.router.r0c1, cube0.pe0, cube0.pe0.xbar, io.io_cpu, host: the last part, but of routers.
    ends = frozenset(
        "router" if "router" in kind else kind[-1].rstrip("0123456789") for kind in kinds
    )
    return _LINK_ENDS.get(ends, UCIE_GBS)


def in_sip(sip: int, route: Route) -> Route:
    """A route through SIP 0 as one through another SIP."""
    return tuple(hop.at(hop.node, sip) for hop in route) if sip else route


ROUTER_NS, MESH_GBS = "cube.noc.router_overhead_ns", "cube.noc.link_bw_gbs"
UCIE_NS, UCIE_GBS = "ucie.overhead_ns", "ucie.bw_gbs"
PE_GBS, SRAM_GBS = "pe.to_router_bw_gbs", "cube.sram_to_router_bw_gbs"
M_CPU_GBS = "cube.m_cpu.to_router_bw_gbs"
XBAR_GBS, TCM_GBS = "xbar.to_hbm_bw_gbs", "pe.tcm.bw_gbs"
FETCH_GBS = "pe.fetch_store.bw_gbs"
IO = "sip.io_chiplet."
LINK_LABELS = {
    IO + "pcie_ep.bw_gbs": "PCIe",
    IO + "io_cpu.bw_gbs": "IO_CPU link",
    IO + "noc.bw_gbs": "IO NoC link",
    UCIE_GBS: "UCIe",
    MESH_GBS: "mesh link",
    M_CPU_GBS: "M_CPU link",
    SRAM_GBS: "SRAM link",
    PE_GBS: "PE link",
    XBAR_GBS: "crossbar link",
}
"""The kinds of links, by the key of their bandwidth."""
_LINK_ENDS = {
    frozenset({"host", "pcie_ep"}): IO + "pcie_ep.bw_gbs",
    frozenset({"pcie_ep", "io_cpu"}): IO + "io_cpu.bw_gbs",
    frozenset({"io_cpu", "io_noc"}): IO + "noc.bw_gbs",
    frozenset({"router"}): MESH_GBS,
    frozenset({"router", "m_cpu"}): M_CPU_GBS,
    frozenset({"router", "sram"}): SRAM_GBS,
    frozenset({"router", "pe"}): PE_GBS,
    frozenset({"router", "xbar"}): XBAR_GBS,
    frozenset({"pe", "xbar"}): XBAR_GBS,
    frozenset({"xbar", "hbm_ctrl"}): XBAR_GBS,
}

# The crossbar is beside the PE, its slice and its router: no wires.
XBAR_TO_HBM: Route = (KeyedHop("0", "cube.hbm_ctrl.overhead_ns", XBAR_GBS),)
TO_XBAR: Route = (KeyedHop("0", "xbar.overhead_ns", XBAR_GBS),)
XBAR_TO_PE: Route = (KeyedHop("0", "0", XBAR_GBS),)
XBAR_TO_ROUTER: Route = (KeyedHop("0", ROUTER_NS, XBAR_GBS),)
IO_CROSSING: Route = (KeyedHop(IO + "gap_mm", UCIE_NS, UCIE_GBS),)
TO_IO_NOC: Route = (KeyedHop("0", IO + "noc.overhead_ns", node="io.io_noc"),)
HOST_TO_IO: Route = (
    KeyedHop("0", IO + "pcie_ep.overhead_ns", IO + "pcie_ep.bw_gbs", "io.pcie_ep"),
    KeyedHop("0", IO + "io_cpu.overhead_ns", IO + "io_cpu.bw_gbs", "io.io_cpu"),
    KeyedHop("0", IO + "noc.overhead_ns", IO + "noc.bw_gbs", "io.io_noc"),
)
# The link between two components has one bandwidth for both directions: the keys of HOST_TO_IO,
# each at the hop which enters the other end.
IO_TO_HOST: Route = (
    KeyedHop("0", IO + "io_cpu.overhead_ns", IO + "noc.bw_gbs", "io.io_cpu"),
    KeyedHop("0", IO + "pcie_ep.overhead_ns", IO + "io_cpu.bw_gbs", "io.pcie_ep"),
    KeyedHop("0", "host.overhead_ns", IO + "pcie_ep.bw_gbs", "host"),
)
TO_NEXT_SIP: Route = (
    KeyedHop("0", UCIE_NS),
    KeyedHop("system.sips.spacing_mm", UCIE_NS, UCIE_GBS),
    *TO_IO_NOC,
)


def through_switch() -> Route:
    """Route between SIPs over the switch: its overhead, and the spacing of the SIPs twice."""
    spacing = "system.sips.spacing_mm"
    return (
        KeyedHop("0", UCIE_NS),
        KeyedHop(spacing, "system.components.switch.overhead_ns", UCIE_GBS),
        KeyedHop(spacing, UCIE_NS, UCIE_GBS),
        *TO_IO_NOC,
    )


def to_next_cube(out_mm: str, in_mm: str) -> Route:
    """Router to UCIe port, the gap between the cubes, port to router; wires of the given length."""
    return (
        KeyedHop(out_mm, UCIE_NS),
        KeyedHop("sip.cube_gap_mm", UCIE_NS, UCIE_GBS),
        KeyedHop(in_mm, ROUTER_NS),
    )


def cube_to_io(out_mm: str) -> Route:
    """Route from the router at a UCIe port of a cube to the IO NoC."""
    # The ports of both sides have an overhead; only the gap between them limits the bandwidth.
    return (KeyedHop(out_mm, UCIE_NS), *IO_CROSSING, *TO_IO_NOC)


def io_to_cube(in_mm: str) -> Route:
    """Route from the IO NoC to the router at a UCIe port of a cube."""
    return (KeyedHop("0", UCIE_NS), *IO_CROSSING, KeyedHop(in_mm, ROUTER_NS))
