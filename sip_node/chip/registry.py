"""Which class stands behind each kind of node that is an endpoint of routes. `impl:` in the topology file replaces one.

A component is constructed as `Class(surroundings, node index)` and receives packets through `accept(packet, tail_ps)`.
"""

from collections.abc import Callable

from runtime.core.errors import ConfigError
from runtime.core.registry import look_up, look_up_class
from runtime.model.graph import Node
from sip_node.chip.context import ChipContext
from sip_node.chip.fabric.fabric import Endpoint
from sip_node.chip.host.host import Host
from sip_node.chip.host.io_cpu import IoCpu
from sip_node.chip.host.m_cpu import MCpu
from sip_node.chip.memory.storage import HbmController, Sram
from sip_node.chip.pe.pe import Pe

COMPONENTS: dict[str, Callable[[ChipContext, int], Endpoint]] = {
    "host": Host,
    "io_cpu": IoCpu,
    "m_cpu": MCpu,
    "pe": Pe,
    "hbm_ctrl": HbmController,
    "sram": Sram,
}

WHOLE: dict[str, type[Endpoint]] = {"host": Host, "pe": Pe}
"""Of these a chip asks more than to accept packets: a class of one's own derives from the one here."""


def build(around: ChipContext, node: Node) -> Endpoint:
    """The component of a node; `ConfigError` when what `impl:` names for its kind cannot be one."""
    key_path = f"impl.{node.kind}"
    if node.kind in WHOLE:
        look_up_class(node.impl, WHOLE, WHOLE[node.kind], "topology", key_path)
    chosen = look_up(node.impl, COMPONENTS, "topology", key_path)
    if not hasattr(chosen, "accept"):
        raise ConfigError(
            "topology",
            key_path,
            f"{node.impl!r} cannot receive packets: it has no accept(packet, tail_ps)",
        )
    return chosen(around, node.index)
