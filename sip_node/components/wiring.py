"""What the engines of one PE share: the clock, the fabric, the TCM and who they are."""

from collections.abc import Callable
from dataclasses import dataclass

from runtime.hardware.topology import Topology
from runtime.places import Place
from runtime.trace import OpRecord
from sip_node.components.fabric import Fabric
from sip_node.components.pe_tcm import PeTcm
from sip_node.engine import Engine


@dataclass(frozen=True)
class PeWiring:
    """The surroundings of one PE.

    `locate(address)` is the (sip, node) of the memory at a physical address, `locate_pe` that of a PE, and
    `next_flow(sip)` numbers the transfers to another SIP.
    """

    engine: Engine
    fabric: Fabric
    topology: Topology
    place: Place
    node: int
    tcm: PeTcm
    record: Callable[[OpRecord], None]
    locate: Callable[[int], tuple[int, int]]
    locate_pe: Callable[[Place], tuple[int, int]]
    next_flow: Callable[[int], tuple[int, int, int]]
