"""Cycles of full buffers, from what the SIPs report."""

from runtime.core.errors import NetworkDeadlock
from runtime.diagnosis.buffer_cycle import network_deadlock
from runtime.wire.reports import SipReport, StalledBuffer


def report(sip: int, *edges: tuple[str, str]) -> SipReport:
    stalled = tuple(StalledBuffer(a, f"the packet in {a}", b) for a, b in edges)
    return SipReport(sip, "", 1000 + sip, False, None, {}, (), "", stalled=stalled)


def test_a_cycle_across_sips_is_listed_in_the_order_of_waiting_from_the_least_name_on() -> None:
    error = network_deadlock([report(0, ("c", "a"), ("x", "c")), report(1, ("a", "b"), ("b", "c"))])
    assert isinstance(error, NetworkDeadlock)
    assert error.time_ps == 1001
    assert error.cycle == tuple((name, f"the packet in {name}") for name in "abc")
    assert str(error) == (
        "NetworkDeadlock at 1.001 ns: no event is left; 3 full buffers of the network wait for "
        "each other\n"
        "  a: the packet in a, waits for\n"
        "  b: the packet in b, waits for\n"
        "  c: the packet in c, waits for\n"
        "  the first of these buffers"
    )


def test_a_chain_that_ends_is_no_deadlock_of_the_network() -> None:
    assert network_deadlock([report(0, ("a", "b"), ("b", "endpoint"))]) is None
    assert network_deadlock([report(0)]) is None
