"""Cycles and chains of the wait-for graph, from reports that the test builds."""

from hypothesis import given
from hypothesis import strategies as st

from runtime.core.coordinates import PeCoordinates
from runtime.diagnosis.wait_for_graph import PathEnd, PeThread, WaitForGraph
from runtime.wire.reports import BlockedPe, SipReport


def graph(peers: dict[int, int]) -> WaitForGraph:
    """PE n of SIP 0 is blocked in a receive from PE `peers[n]`."""
    blocked = tuple(
        BlockedPe(0, 0, pe, "k", "recv", "W", (0, 0, peer), 1_000, "k.py:3")
        for pe, peer in peers.items()
    )
    return WaitForGraph([SipReport(0, "", 1_000, False, None, {}, blocked, "kernel 'k'")])


def paths(peers: dict[int, int]) -> list[tuple[list[int], PathEnd]]:
    """The PE numbers and the end of every path."""
    found = graph(peers).paths()
    return [([each.coordinates.pe for each in path.threads], path.end) for path in found]


def test_a_cycle_begins_at_its_lowest_thread_and_comes_before_the_chains_that_join_it() -> None:
    assert paths({3: 1, 1: 2, 2: 3, 0: 4, 4: 2, 5: 4}) == [
        ([1, 2, 3], PathEnd.CYCLE),
        ([0, 4], PathEnd.JOINS_CYCLE),
        ([5], PathEnd.JOINS_PATH),
    ]


def test_a_thread_without_a_kernel_depends_on_the_first_blocked_thread_of_its_sip() -> None:
    thread = PeThread(PeCoordinates(0, 0, 9), collective=False)
    assert graph({4: 5, 2: 4}).dependency(thread) == PeThread(PeCoordinates(0, 0, 2), False)


@given(st.dictionaries(st.integers(0, 9), st.integers(0, 9), min_size=1))
def test_every_blocked_thread_is_on_exactly_one_path_and_each_thread_depends_on_the_next(
    peers: dict[int, int],
) -> None:
    waits = graph(peers)
    found = waits.paths()
    threads = [thread for path in found for thread in path.threads]
    assert len(threads) == len(set(threads))
    assert set(waits.blocked) <= set(threads)
    for path in found:
        following = path.threads[0] if path.is_cycle else path.joined
        for thread, dependency in zip(path.threads, (*path.threads[1:], following), strict=True):
            assert waits.dependency(thread) == dependency
