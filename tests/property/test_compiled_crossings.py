"""Packets from SIP to SIP: both modes of the texts give one order of everything."""

import pytest

from runtime.core.compiled.choice import IS_COMPILED
from sip_node.chip.fabric.packet import Packet
from sip_node.chip.ports.packet_runs import PacketRuns
from tests.support.random_crossings import RandomCrossings, systems
from tests.support.two_modes import printed

SYSTEMS = 60
ENTRY_FIELDS = 8
"""Fields of an entry about a packet: SIP, time, tail, entrance, neighbour, tag, begin, last."""


@pytest.mark.skipif(not IS_COMPILED, reason="the compiled core does not run")
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
def test_both_modes_give_the_same_order_between_sips(sips: int, fabric: str, topology: str) -> None:
    interpreted, compiled = printed(
        "tests.support.random_crossings", SYSTEMS, sips, fabric, topology
    )
    assert len(compiled) == SYSTEMS
    for seed, (expected, found) in enumerate(zip(interpreted, compiled, strict=True)):
        assert expected == found, f"system {seed}"
    assert sum(int(line.split()[0]) for line in compiled) > 20 * SYSTEMS


@pytest.mark.parametrize(("sips", "fabric"), [(3, "direct"), (4, "switch")])
def test_every_packet_of_a_transfer_arrives_once_and_the_last_one_last(
    sips: int, fabric: str
) -> None:
    spec, transfers = systems(sips, fabric, "ring_1d"), 0
    for seed in range(SYSTEMS):
        log = RandomCrossings(spec, seed).run()
        if any(entry[:1] == ("beyond time",) for entry in log):
            continue
        arrived: dict[object, list[tuple[object, object]]] = {}
        for entry in log:
            if len(entry) == ENTRY_FIELDS and isinstance(entry[0], int):
                arrived.setdefault(entry[5], []).append((entry[6], entry[7]))
        for packets in arrived.values():
            begins = [begin for begin, _ in packets]
            assert begins == sorted(set(begins))
            assert [last for _, last in packets] == [False] * (len(packets) - 1) + [True]
        transfers += len(arrived)
    assert transfers > 5 * SYSTEMS


def test_a_packet_that_comes_late_is_seen() -> None:
    class Late(PacketRuns):
        def arrive(self, head_ps: int, source: int, seq: int, tail_ps: int, packet: Packet) -> None:
            super().arrive(head_ps + 1, source, seq, tail_ps + 1, packet)

    spec = systems(3, "direct", "ring_1d")
    assert any(
        RandomCrossings(spec, seed, Late).run() != RandomCrossings(spec, seed).run()
        for seed in range(5)
    )
