"""Packets from SIP to SIP: the compiled core and the reference give one order of everything."""

import pytest

from runtime.core.compiled.choice import IS_COMPILED
from sip_node.chip.chip import chip_spec
from sip_node.chip.context import ChipSpec
from sip_node.chip.fabric.packet import Packet
from sip_node.chip.packet_runs import ReferencePacketRuns
from tests.support.cores import COMPILED, REFERENCE
from tests.support.random_crossings import RandomCrossings
from tests.support.topologies import small

pytestmark = pytest.mark.skipif(not IS_COMPILED, reason="the compiled core does not run")

SYSTEMS = 60


def spec_of(sips: int, fabric: str, topology: str) -> ChipSpec:
    return chip_spec(
        small(
            system__sips__count=sips, system__sips__fabric=fabric, system__sips__topology=topology
        ),
        data=False,
    )


@pytest.mark.parametrize(
    ("sips", "fabric", "topology"),
    [
        (2, "direct", "ring_1d"),
        (5, "direct", "ring_1d"),
        (9, "direct", "torus_2d"),
        (4, "direct", "mesh_2d_no_wrap"),
        (4, "switch", "ring_1d"),
    ],
)
def test_both_cores_give_the_same_order_between_sips(sips: int, fabric: str, topology: str) -> None:
    spec = spec_of(sips, fabric, topology)
    packets = 0
    for seed in range(SYSTEMS):
        compiled = RandomCrossings(COMPILED, spec, seed)
        assert compiled.run() == RandomCrossings(REFERENCE, spec, seed).run(), f"system {seed}"
        packets += sum(ports.received for ports in compiled.ports)
    assert packets > 20 * SYSTEMS


def test_a_packet_that_comes_late_is_seen() -> None:
    class Late(ReferencePacketRuns):
        def arrive(self, head_ps: int, source: int, seq: int, tail_ps: int, packet: Packet) -> None:
            super().arrive(head_ps + 1, source, seq, tail_ps + 1, packet)

    wrong = REFERENCE._replace(runs=Late)
    spec = spec_of(3, "direct", "ring_1d")
    assert any(
        RandomCrossings(wrong, spec, seed).run() != RandomCrossings(COMPILED, spec, seed).run()
        for seed in range(5)
    )
