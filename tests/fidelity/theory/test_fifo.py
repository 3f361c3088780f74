"""Flows that meet at a server, by hand."""

from tests.fidelity.theory.fifo import FlowArrivals, last_ends_ps, waits_ps


def test_a_packet_alone_takes_the_service_time():
    assert last_ends_ps([FlowArrivals(100)], 30) == [130]


def test_a_packet_waits_until_the_packet_before_has_left():
    assert last_ends_ps([FlowArrivals(110), FlowArrivals(100)], 30) == [160, 130]


def test_packets_that_arrive_together_keep_the_order_of_the_flows():
    assert last_ends_ps([FlowArrivals(100), FlowArrivals(100)], 30) == [130, 160]


def test_flows_of_many_packets_alternate():
    # Arrivals at 0, 10, 20 and at 5, 15, 25: the server is never idle.
    flows = [FlowArrivals(0, 3, 10), FlowArrivals(5, 3, 10)]
    assert last_ends_ps(flows, 30) == [150, 180]


def test_a_server_is_idle_where_nothing_waits():
    assert last_ends_ps([FlowArrivals(0, 3, 100)], 30) == [230]


def test_a_packet_waits_for_what_is_left_of_the_packets_before_it():
    assert waits_ps([0, 4, 5, 40], 10) == [0, 6, 15, 0]


def test_packets_that_arrive_together_wait_for_each_other():
    assert waits_ps([7, 7, 7], 10) == [0, 10, 20]
