"""The components of a SIP that are made when something first reaches them.

A SIP has 128 PEs and as many memories, and many runs use few of them: to make all of them would be
most of the start of a process, and of its memory. A component has no event of its own before
a packet arrives, so nothing simulated depends on when it is made. This is known of the classes of
the model only: with a class that the topology file names, all components are made at once.
"""

from collections.abc import Callable

from runtime.model.graph import Node
from runtime.model.schema import Implementations, NodeKind
from sip_node.chip.context import ChipSpec
from sip_node.chip.fabric.fabric import EndpointLike
from sip_node.chip.fabric.packet import Packet

_LATE: frozenset[NodeKind] = frozenset(("pe", "hbm_ctrl", "sram"))
_MODEL_ONLY = Implementations()


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
