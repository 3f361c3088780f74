"""The classes of both cores, for tests that run one machine on each."""

from collections.abc import Callable
from typing import Any, NamedTuple

from sip_node.chip.fabric.egress_stream import EgressStream, ReferenceEgressStream
from sip_node.chip.fabric.fabric import Fabric, ReferenceFabric
from sip_node.chip.fabric.packet_switch import PacketSwitch, ReferencePacketSwitch
from sip_node.chip.fabric.server import ReferenceServer, Server
from sip_node.chip.memory.memory_packets import MemoryPackets, ReferenceMemoryPackets
from sip_node.chip.memory.port_turns import PortTurns, ReferencePortTurns
from sip_node.chip.memory.transaction_queue import ReferenceTransactionQueue, TransactionQueue
from sip_node.chip.pe.data_landing import DataLanding, ReferenceDataLanding
from sip_node.chip.pe.read_window import ReadWindow, ReferenceReadWindow
from sip_node.pdes.engine import Engine, ReferenceEngine


class LateServer(Server):
    """A class of `impl:`: a link of the compiled fabric with a method in Python."""

    def reserve(self, head_ps: int, tail_ps: int, nbytes: int) -> tuple[int, int]:
        return super().reserve(head_ps + 7, tail_ps + 7, nbytes)


class LateReference(ReferenceServer):
    """The same class for the reference."""

    def reserve(self, head_ps: int, tail_ps: int, nbytes: int) -> tuple[int, int]:
        return super().reserve(head_ps + 7, tail_ps + 7, nbytes)


class Core(NamedTuple):
    """The classes of one core, and a server in Python that links of `impl:` have."""

    engine: type[ReferenceEngine]
    fabric: type[ReferenceFabric]
    server: type[ReferenceServer]
    replacement: type[ReferenceServer]
    data_landing: Callable[..., Any]
    egress_stream: Callable[..., Any]
    memory_packets: Callable[..., Any]
    packet_switch: Callable[..., Any]
    port_turns: Callable[..., Any]
    read_window: Callable[..., Any]
    transaction_queue: Callable[..., Any]


REFERENCE = Core(
    engine=ReferenceEngine,
    fabric=ReferenceFabric,
    server=ReferenceServer,
    replacement=LateReference,
    data_landing=ReferenceDataLanding,
    egress_stream=ReferenceEgressStream,
    memory_packets=ReferenceMemoryPackets,
    packet_switch=ReferencePacketSwitch,
    port_turns=ReferencePortTurns,
    read_window=ReferenceReadWindow,
    transaction_queue=ReferenceTransactionQueue,
)
COMPILED = Core(
    engine=Engine,
    fabric=Fabric,
    server=Server,
    replacement=LateServer,
    data_landing=DataLanding,
    egress_stream=EgressStream,
    memory_packets=MemoryPackets,
    packet_switch=PacketSwitch,
    port_turns=PortTurns,
    read_window=ReadWindow,
    transaction_queue=TransactionQueue,
)
"""The core that `KERNBENCH_CORE` chooses: tests that compare it need `IS_COMPILED`."""
