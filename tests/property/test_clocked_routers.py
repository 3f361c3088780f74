"""The order in which routers work in a cycle has no influence on any packet."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernbench.theory.topology_file import TopologyFile
from kernbench.validate import mesh_network
from kernbench.validate.mesh_network import NODES, MeshNetwork, MeshRouter
from runtime.core.simtime import NEVER_PS
from sip_node.chip.fabric.credited_fabric import ReferenceCreditedFabric
from sip_node.chip.fabric.cycle_queue import CycleQueue
from sip_node.chip.fabric.packet import Packet
from tests.support.topologies import default_text

FILE = TopologyFile.of(default_text())


class _ReferenceMesh(ReferenceCreditedFabric):
    restores_order = False


class _Log:
    def __init__(self, network: MeshNetwork) -> None:
        self.arrivals: list[tuple[int, int, int]] = []
        self._network = network

    def accept(self, packet: Packet, tail_ps: int) -> None:
        self.arrivals.append((packet.transfer.source_node, packet.transfer.sent_ps, tail_ps))


def arrivals(router: MeshRouter, packets: list[tuple[int, int, int, int]]) -> list[tuple[int, ...]]:
    network = MeshNetwork(FILE, router)
    log = _Log(network)
    for pe in network.pes:
        network.fabric.attach(pe, log)
    for cycle, source, target, flits in packets:
        network.engine.at(cycle * 1000, network.send, source, target, flits * 64)
    network.engine.run_before(NEVER_PS)
    return sorted(log.arrivals)


PACKETS = st.lists(
    st.tuples(
        st.integers(0, 30),
        st.integers(0, NODES - 1),
        st.sampled_from([0, 5, 6, 15]),
        st.integers(1, 6),
    ),
    min_size=1,
    max_size=30,
)
ROUTERS = st.builds(
    MeshRouter,
    flow_control=st.just("credits"),
    stages=st.integers(1, 4),
    vcs=st.integers(1, 4),
    buffer_flits=st.integers(1, 6),
)


@pytest.mark.slow
@settings(max_examples=6)
@given(router=ROUTERS, packets=PACKETS, seed=st.integers(0, 99))
def test_routers_may_work_in_any_order(
    router: MeshRouter, packets: list[tuple[int, int, int, int]], seed: int
) -> None:
    # On either core; the order in which routers work can be changed in the reference.
    expected = arrivals(router, packets)
    assert len(expected) == len(packets)
    rng = Random(seed)
    in_order = CycleQueue._execute

    def shuffled(queue: CycleQueue, cycle: int) -> None:
        rng.shuffle(queue._requests[cycle])
        in_order(queue, cycle)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mesh_network, "_MeshFabric", _ReferenceMesh)
        patch.setattr(CycleQueue, "_execute", shuffled)
        assert arrivals(router, packets) == expected
