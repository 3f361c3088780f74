"""A mesh of FIFO links, by hand."""

from tests.fidelity.theory.mesh_fifo import latencies, route


def test_routes_take_columns_before_rows():
    assert route(0, 5, 4) == [(0, 0, "in"), (0, 1, ""), (1, 5, ""), (5, 5, "out")]


def test_a_packet_alone_takes_three_cycles_a_router_and_its_flits():
    # 3 H + 1 + F with H routers: 1, then 7.
    assert latencies([(0, 3, 3)], 1, 4) == [5]
    assert latencies([(10, 0, 15)], 8, 4) == [30]


def test_the_second_packet_of_a_node_waits_for_the_first():
    assert latencies([(0, 0, 1), (2, 0, 1)], 8, 4) == [15, 21]


def test_heads_that_arrive_first_are_served_first():
    # Both go to node 1: that of node 2 is generated one cycle later, at the same distance.
    assert latencies([(0, 0, 1), (1, 2, 1)], 8, 4) == [15, 22]
