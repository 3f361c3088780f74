"""The context that the engines of a PE share: the clock, the fabric, the TCM, the coordinates."""

from collections.abc import Callable
from dataclasses import dataclass

from runtime.core.coordinates import PeCoordinates
from runtime.model.topology import Topology
from sip_node.chip.fabric.clocked.credited_fabric import CreditedFabric
from sip_node.chip.fabric.fabric import Fabric
from sip_node.chip.fast_forward import FastForward
from sip_node.chip.pe.tcm import PeTcm
from sip_node.chip.records.op_log import OpLog
from sip_node.pdes.engine import Engine


@dataclass(frozen=True)
class PeContext:
    """The context of the PE at fabric node `node`.

    `record` appends to the op log, as `log.add` does. `locate(address)` is the (sip, node) of the
    memory at a physical address, `locate_pe` that of a PE, and `next_flow(sip)` numbers the
    transfers to another SIP. `forward` takes the products whose steps repeat.
    """

    engine: Engine
    fabric: Fabric | CreditedFabric
    topology: Topology
    coordinates: PeCoordinates
    node: int
    tcm: PeTcm
    log: OpLog
    record: Callable[..., None]
    locate: Callable[[int], tuple[int, int]]
    locate_pe: Callable[[PeCoordinates], tuple[int, int]]
    next_flow: Callable[[int], tuple[int, int, int]]
    forward: FastForward | None
