"""Which class serves the links that leave a node which packets pass: a router, a port, a crossbar. `impl:` replaces one.

Such a node delays by its overhead and forwards over its links, so what one of your own does differently is how its links serve.
Its class derives from `Server`, is constructed as `Class(name, bw_gbs)`, and starts no packet before its head is there.
"""

from runtime.core.registry import look_up_class
from runtime.model.topology import Topology
from sip_node.chip.fabric.server import Server

LINKS: dict[str, type[Server]] = dict.fromkeys(
    ("router", "xbar", "ucie", "pcie_ep", "io_noc", "switch"), Server
)


def link_server(topology: Topology, kind: str) -> type[Server]:
    """The class of the servers of all links that leave a node of `kind`; `Server` where packets end instead of passing.

    `ConfigError` names the key, and the nearest registered name or what is wrong with the class.
    """
    if kind not in LINKS:
        return Server
    return look_up_class(topology.impl.of(kind), LINKS, Server, "topology", f"impl.{kind}")
