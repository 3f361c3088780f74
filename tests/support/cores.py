"""The classes of both cores, for tests that run one machine on each."""

from typing import NamedTuple

from sip_node.chip.arriving_transfers import ArrivingTransfers, ReferenceArrivingTransfers
from sip_node.chip.fabric.fabric import Fabric, ReferenceFabric
from sip_node.chip.fabric.server import Server
from sip_node.chip.packet_rules import PacketRules, ReferencePacketRules
from sip_node.chip.packet_runs import PacketRuns, ReferencePacketRuns
from sip_node.chip.ucie_ports import ReferenceUciePorts, UciePorts
from sip_node.pdes.engine import Engine, ReferenceEngine
from sip_node.pdes.sender import ReferenceSender, Sender


class LateServer(Server):
    """A class of `impl:`: a link of the compiled fabric with a method in Python."""

    def reserve(self, head_ps: int, tail_ps: int, nbytes: int) -> tuple[int, int]:
        return super().reserve(head_ps + 7, tail_ps + 7, nbytes)


class Core(NamedTuple):
    """The classes of one core."""

    engine: type[ReferenceEngine]
    fabric: type[ReferenceFabric]
    sender: type[ReferenceSender]
    ports: type[ReferenceUciePorts]
    runs: type[ReferencePacketRuns]
    arrivals: type[ReferenceArrivingTransfers]
    packet_rules: type[ReferencePacketRules]


REFERENCE = Core(
    engine=ReferenceEngine,
    fabric=ReferenceFabric,
    sender=ReferenceSender,
    ports=ReferenceUciePorts,
    runs=ReferencePacketRuns,
    arrivals=ReferenceArrivingTransfers,
    packet_rules=ReferencePacketRules,
)
COMPILED = Core(
    engine=Engine,
    fabric=Fabric,
    sender=Sender,
    ports=UciePorts,
    runs=PacketRuns,
    arrivals=ArrivingTransfers,
    packet_rules=PacketRules,
)
"""The core that `KERNBENCH_CORE` chooses: tests that compare it need `IS_COMPILED`."""
