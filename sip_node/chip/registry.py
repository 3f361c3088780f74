"""The one registry of components: which class models each kind of node, link and engine of a chip.

`impl:` in the topology file replaces a class, by a name that is registered here or by the path
`package.module:Class` of a user's class. Three groups have three contracts:

- *Endpoints* receive packets. They are constructed as `Class(chip, node)`, with the `ChipContext`
  and the index of their node, and have `accept(packet, tail_ps)`. A chip uses more of its host and
  its PEs than that, so a replacement of these derives from the class here.
- *Links* serve the packets that leave a node which packets pass: a router, a port, a crossbar. Such
  a node only delays, so its links are what a replacement changes: a class derived from `Server`,
  constructed as `Class(name, bw_gbs)`, that starts no packet before its head has arrived.
- *Engines* are the parts of a PE. A replacement has the constructor and methods of the original.

Some components are made when something first reaches them. A SIP has 128 PEs and as many memories,
and many runs use few of them: to make all of them would be most of the start of a process, and of
its memory. A component has no event of its own before a packet arrives, so nothing simulated
depends on when it is made. This is known of the classes of the model only: with a class that the
topology file names, all components are made at once.
"""

from collections.abc import Callable
from typing import Any

from runtime.core.errors import ConfigError
from runtime.core.registry import look_up, look_up_class
from runtime.model.graph import Node
from runtime.model.schema.topology_schema import Implementations, NodeKind
from runtime.model.topology import Topology
from sip_node.chip.context import ChipContext, ChipSpec, Components
from sip_node.chip.fabric.packet import EndpointLike, Packet
from sip_node.chip.fabric.server import Server
from sip_node.chip.host.host import Host
from sip_node.chip.host.io_cpu import IoCpu
from sip_node.chip.host.m_cpu import MCpu
from sip_node.chip.memory.storage import HbmController, Sram
from sip_node.chip.pe.compute.fetch_store import PeFetchStore
from sip_node.chip.pe.compute.gemm import PeGemm
from sip_node.chip.pe.compute.math import PeMath
from sip_node.chip.pe.compute.scheduler import PeScheduler
from sip_node.chip.pe.cpu import PeCpu
from sip_node.chip.pe.dma import PeDma
from sip_node.chip.pe.ipcq import PeIpcq
from sip_node.chip.pe.mmu import PeMmu
from sip_node.chip.pe.pe import Pe
from sip_node.chip.pe.tcm import PeTcm

_LATE: frozenset[NodeKind] = frozenset(("pe", "hbm_ctrl", "sram"))
_MODEL_ONLY = Implementations()
ENDPOINTS: dict[str, Callable[[ChipContext, int], EndpointLike]] = {
    "host": Host,
    "io_cpu": IoCpu,
    "m_cpu": MCpu,
    "pe": Pe,
    "hbm_ctrl": HbmController,
    "sram": Sram,
}
LINKS: dict[str, type[Server]] = dict.fromkeys(
    ("router", "xbar", "ucie", "pcie_ep", "io_noc", "switch"), Server
)
CLOCKED = ("router", "xbar", "ucie", "io_noc")
"""The kinds of links that are clocked with `noc.flow_control: credits`."""
ENGINES: dict[str, Callable[..., Any]] = {
    "pe_cpu": PeCpu,
    "pe_dma": PeDma,
    "pe_fetch_store": PeFetchStore,
    "pe_gemm": PeGemm,
    "pe_ipcq": PeIpcq,
    "pe_math": PeMath,
    "pe_mmu": PeMmu,
    "pe_scheduler": PeScheduler,
    "pe_tcm": PeTcm,
}
# Endpoints of which a chip uses more than `accept`.
_DERIVED: dict[str, type[EndpointLike]] = {"host": Host, "pe": Pe}
_FILE = "topology"


def components(topology: Topology) -> Components:
    """The classes of a run, all looked up before anything is built.

    `ConfigError` names the key, and the nearest registered name or what is wrong with the class.
    """
    impl = topology.impl
    _check_clocked_links(topology)
    return Components(
        endpoints={kind: _endpoint(impl.of(kind), kind) for kind in ENDPOINTS},
        links={
            kind: look_up_class(impl.of(kind), LINKS, Server, _FILE, f"impl.{kind}")
            for kind in LINKS
        },
        engines={kind: look_up(impl.of(kind), ENGINES, _FILE, f"impl.{kind}") for kind in ENGINES},
    )


def _check_clocked_links(topology: Topology) -> None:
    """Refuse a class of links with credits: a link with a calendar cannot serve flits in turn."""
    if topology.noc.flow_control != "credits":
        return
    for kind in CLOCKED:
        name = topology.impl.of(kind)
        if name != kind:
            raise ConfigError(
                _FILE,
                f"impl.{kind}",
                f"{name!r} replaces links with calendars; with noc.flow_control credits the links "
                f"of {kind} are parts of clocked routers (leave the key out, or use unlimited)",
            )


def _endpoint(name: str, kind: str) -> Callable[[ChipContext, int], EndpointLike]:
    key_path = f"impl.{kind}"
    # Checked before anything runs: a wrong class fails with the key of the file.
    if kind in _DERIVED:
        look_up_class(name, _DERIVED, _DERIVED[kind], _FILE, key_path)
    chosen = look_up(name, ENDPOINTS, _FILE, key_path)
    if not hasattr(chosen, "accept"):
        raise ConfigError(
            _FILE, key_path, f"{name!r} cannot receive packets: it has no accept(packet, tail_ps)"
        )
    return chosen


def is_late(node: Node, spec: ChipSpec) -> bool:
    """Whether the component of `node` may wait for its first packet.

    With credits it may not: buffers are attached to the memories.
    """
    return node.kind in _LATE and spec.layers is None and spec.topology.impl == _MODEL_ONLY


class Unreached:
    """The endpoint of a component that does not exist: `reach(node)` makes it for the first packet.

    It takes its place as the endpoint.
    """

    __slots__ = ("_node", "_reach")

    def __init__(self, reach: Callable[[int], EndpointLike], node: int) -> None:
        self._reach, self._node = reach, node

    def accept(self, packet: Packet, tail_ps: int) -> None:
        """Pass the packet to the component."""
        self._reach(self._node).accept(packet, tail_ps)
