"""Which class stands behind each kind of node that is an endpoint of routes. `impl:` in the topology file replaces one.

A component is constructed as `Class(surroundings, node index)` and receives packets through `accept(packet, tail_ps)`.
"""

from collections.abc import Callable

from sip_node.components.fabric import Endpoint
from sip_node.components.host import Host
from sip_node.components.io_cpu import IoCpu
from sip_node.components.m_cpu import MCpu
from sip_node.components.pe import Pe
from sip_node.components.storage import HbmController, Sram
from sip_node.components.surroundings import Surroundings

COMPONENTS: dict[str, Callable[[Surroundings, int], Endpoint]] = {
    "host": Host,
    "io_cpu": IoCpu,
    "m_cpu": MCpu,
    "pe": Pe,
    "hbm_ctrl": HbmController,
    "sram": Sram,
}
