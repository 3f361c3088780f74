"""Routes through a system as lists of hops, each hop given by keys of the topology file.

A hop is what a packet pays to enter a component: the wire to it, its overhead, and the bandwidth of
the link. The pieces below join to routes with `+`.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class KeyedHop:
    """One hop. Each field is a key path of the topology file or a literal number."""

    mm: str
    overhead_ns: str
    gbs: str = ""
    """Empty where the link does not serialise: no bandwidth limit."""


Route = tuple[KeyedHop, ...]

ROUTER_NS, MESH_GBS = "cube.noc.router_overhead_ns", "cube.noc.link_bw_gbs"
UCIE_NS, UCIE_GBS = "ucie.overhead_ns", "ucie.bw_gbs"
PE_GBS, SRAM_GBS = "pe.to_router_bw_gbs", "cube.sram_to_router_bw_gbs"
M_CPU_GBS = "cube.m_cpu.to_router_bw_gbs"
XBAR_GBS, TCM_GBS = "xbar.to_hbm_bw_gbs", "pe.tcm.bw_gbs"
IO = "sip.io_chiplet."

# The crossbar is beside the PE, its slice and its router: no wires.
XBAR_TO_HBM: Route = (KeyedHop("0", "cube.hbm_ctrl.overhead_ns", XBAR_GBS),)
TO_XBAR: Route = (KeyedHop("0", "xbar.overhead_ns", XBAR_GBS),)
XBAR_TO_PE: Route = (KeyedHop("0", "0", XBAR_GBS),)
XBAR_TO_ROUTER: Route = (KeyedHop("0", ROUTER_NS, XBAR_GBS),)
IO_CROSSING: Route = (KeyedHop(IO + "gap_mm", UCIE_NS, UCIE_GBS),)
TO_IO_NOC: Route = (KeyedHop("0", IO + "noc.overhead_ns"),)
HOST_TO_IO: Route = (
    KeyedHop("0", IO + "pcie_ep.overhead_ns", IO + "pcie_ep.bw_gbs"),
    KeyedHop("0", IO + "io_cpu.overhead_ns", IO + "io_cpu.bw_gbs"),
    KeyedHop("0", IO + "noc.overhead_ns", IO + "noc.bw_gbs"),
)
# The link between two components has one bandwidth for both directions: the keys of HOST_TO_IO,
# each at the hop which enters the other end.
IO_TO_HOST: Route = (
    KeyedHop("0", IO + "io_cpu.overhead_ns", IO + "noc.bw_gbs"),
    KeyedHop("0", IO + "pcie_ep.overhead_ns", IO + "io_cpu.bw_gbs"),
    KeyedHop("0", "host.overhead_ns", IO + "pcie_ep.bw_gbs"),
)
TO_NEXT_SIP: Route = (
    KeyedHop("0", UCIE_NS),
    KeyedHop("system.sips.spacing_mm", UCIE_NS, UCIE_GBS),
    *TO_IO_NOC,
)


def through_switch() -> Route:
    """From one SIP to another over the switch: its overhead, and the spacing of the SIPs twice."""
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
    """From the router at a UCIe port of a cube to the IO NoC."""
    # The ports of both sides have an overhead; only the gap between them limits the bandwidth.
    return (KeyedHop(out_mm, UCIE_NS), *IO_CROSSING, *TO_IO_NOC)


def io_to_cube(in_mm: str) -> Route:
    """From the IO NoC to the router at a UCIe port of a cube."""
    return (KeyedHop("0", UCIE_NS), *IO_CROSSING, KeyedHop(in_mm, ROUTER_NS))
