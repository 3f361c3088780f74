"""The least times on which promises rest, against the routes themselves."""

import pytest

from runtime.model.graph import ChipGraph
from runtime.model.routing import ChipRoutes
from sip_node.chip.bounds.send_times import SipPaths, send_times
from sip_node.chip.fabric.server import Server
from tests.support.topologies import variant


def paths(*, clocked: bool = False) -> SipPaths:
    graph = ChipGraph(variant(sip__cube_mesh={"w": 2, "h": 1}))
    return SipPaths(graph, ChipRoutes(graph), {"router": Server}, clocked)


@pytest.mark.parametrize("clocked", [False, True])
def test_no_pe_is_nearer_to_a_port_than_its_route(clocked: bool) -> None:
    on = paths(clocked=clocked)
    latency_ps = on.latencies()
    found = send_times(on)
    assert len(found.port_path_ps) == 16
    for (cube, pe), least_ps in found.port_path_ps.items():
        assert least_ps == latency_ps(on.graph.pe(cube, pe), on.graph.io_noc) > 0


def test_a_class_of_links_of_the_user_need_not_serve_bytes_one_by_one() -> None:
    class Own(Server):
        pass

    own = paths()
    assert send_times(own).commands.byte_ps > 0
    replaced = SipPaths(own.graph, own.routes, {"router": Own}, clocked=False)
    assert send_times(replaced).commands.byte_ps == 0
