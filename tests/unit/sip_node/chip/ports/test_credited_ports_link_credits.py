"""Credits of the links between SIPs: networks, room, and what a peer may not send."""

import pytest

from runtime.model.sip_fabric import SipFabric
from sip_node.chip.fabric.packet import FabricTransfer, Kind
from sip_node.chip.ports.credited_ports import LinkCredits, LinkNetwork, ingress_bytes
from tests.support.topologies import variant

REQUESTS = LinkNetwork(1, 0)


def link_credits(sips: int = 2, **changes: object) -> LinkCredits:
    topology = variant(system__sips__count=sips, **changes)
    return LinkCredits(topology, SipFabric(topology))


def test_requests_and_replies_have_different_networks_and_so_have_layers() -> None:
    ring = link_credits(sips=8)
    assert ring.networks == 4
    request = FabricTransfer(Kind.WRITE, 6, 0, 1, 0)
    reply = FabricTransfer(Kind.ACK, 6, 0, 1, 0)
    assert ring.network(request, 6, 7) == LinkNetwork(7, 0)
    assert ring.network(request, 7, 0) == LinkNetwork(0, 1)
    assert ring.network(reply, 7, 0) == LinkNetwork(0, 3)
    assert ring.name(LinkNetwork(0, 3)) == "replies, layer 1"


def test_the_buffer_covers_the_round_trip_of_a_crossing() -> None:
    # Two ports of 8 ns, 20 mm of wire, the IO NoC; a packet of 4 KiB at 128 GB/s, there and back.
    round_trip_ns = 2 * (2 * 8 + 0.2 + 2 + 4096 / 128)
    on_link = -(-round_trip_ns * 128 // 128)
    one = ingress_bytes(variant(noc__vcs=1, noc__buffer_flits=1, noc__flit_bytes=128))
    assert one == (1 + on_link) * 128
    more = ingress_bytes(variant(noc__vcs=4, noc__buffer_flits=8, noc__flit_bytes=128))
    assert more == (32 + on_link) * 128


def test_a_network_is_full_until_a_credit_has_arrived() -> None:
    link = link_credits()
    nbytes = link.capacity_bytes // 2
    for _ in range(2):
        assert link.has_room(REQUESTS, nbytes)
        link.sent(REQUESTS, nbytes)
    assert not link.has_room(REQUESTS, nbytes)
    assert link.has_room(LinkNetwork(1, 1), nbytes)
    assert [*link.missing()] == [f"{2 * nbytes:,} B for requests, layer 0 of the link to SIP 1"]
    link.credited(REQUESTS, nbytes)
    assert link.has_room(REQUESTS, nbytes)
    link.credited(REQUESTS, nbytes)
    assert not [*link.missing()]


def test_an_empty_buffer_takes_a_packet_of_any_size() -> None:
    link = link_credits()
    huge = 10 * link.capacity_bytes
    assert link.has_room(REQUESTS, huge)
    assert link.fault_of_packet(REQUESTS, huge) == ""
    link.sent(REQUESTS, huge)
    assert not link.has_room(REQUESTS, 1)


@pytest.mark.parametrize("nbytes", [65, 1 << 20])
def test_a_credit_for_more_than_was_sent_is_a_fault(nbytes: int) -> None:
    link = link_credits()
    link.sent(REQUESTS, 128)
    assert link.fault_of_credit(REQUESTS, 64) == ""
    assert link.fault_of_credit(REQUESTS, nbytes) == (
        f"a credit of {nbytes:,} B for requests, layer 0 of the link to SIP 1, "
        "which has been sent 64 B without a credit"
    )


def test_a_credit_for_a_network_that_does_not_exist_is_a_fault() -> None:
    fault = link_credits().fault_of_credit(LinkNetwork(1, 2), 1)
    assert fault == "a credit for network 2; a link has 2"


def test_a_packet_without_room_is_a_fault_until_a_credit_is_returned() -> None:
    link = link_credits()
    nbytes = link.capacity_bytes
    assert link.fault_of_packet(REQUESTS, nbytes - 100) == ""
    assert link.fault_of_packet(REQUESTS, 101) == (
        "a packet of 101 B for requests, layer 0 of the link from SIP 1, "
        "whose buffer has 100 B free"
    )
    link.returned(REQUESTS, nbytes - 100)
    assert link.fault_of_packet(REQUESTS, 101) == ""
