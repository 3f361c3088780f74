"""The server in C against the reference: where 64 bits are not enough, and its load over time."""

from itertools import product
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.core.compiled.choice import IS_COMPILED
from runtime.core.simtime import NEVER_PS
from sip_node.chip.fabric.server import ReferenceServer
from tests.support.extreme_times import EXTREME_PS

if not IS_COMPILED:
    pytest.skip("the compiled core does not run", allow_module_level=True)

from sip_node.chip.time_bins import ReferenceTimeBins
from sip_node.compiled.server import FifoServer
from sip_node.compiled.time_bins import TimeBins

# How much later a message comes, its bytes, and how long it has waited before.
messages = st.tuples(
    st.sampled_from([0, 1, 300, 1_024, 50_000, 3_000_000]),
    st.sampled_from([0, 1, 64, 4_096]),
    st.sampled_from([0, 0, 700]),
)


@pytest.mark.parametrize("gbs", [1, 204.8, 12.345678901234567, 0.30000000000000004, 1e-25, 1e25])
@pytest.mark.parametrize("nbytes", [0, 1, 255, 999_999_937])
def test_durations_are_exact_for_any_bandwidth(gbs: float, nbytes: int) -> None:
    for server in (FifoServer("link", gbs), ReferenceServer("link", gbs)):
        exact_ps = ceil(nbytes * server.byte_ps)
        if exact_ps <= NEVER_PS:
            assert server.serialisation_ps(nbytes) == exact_ps
        else:
            with pytest.raises(OverflowError, match=r"link: .* bytes end later than a run can"):
                server.serialisation_ps(nbytes)


def test_a_duration_is_computed_again_after_another_size() -> None:
    server = FifoServer("twin", 3)
    assert [server.serialisation_ps(size) for size in (1, 2, 1, 1, 3)] == [334, 667, 334, 334, 1000]


def test_a_wait_beyond_64_bits_is_an_error_and_not_a_wrong_sum() -> None:
    server = FifoServer("twin", 1e-6)
    server.free_ps = server.queued_ps = 3 << 60
    with pytest.raises(OverflowError, match="twin: 1 bytes end later than a run can"):
        server.reserve(0, 0, 1)


@pytest.mark.parametrize("gbs", [1, 1e-3, 0.30000000000000004])
def test_extreme_times_are_served_or_refused_as_by_the_reference(gbs: float) -> None:
    def served(server: ReferenceServer, *message: int) -> object:
        try:
            return server.reserve(*message)
        except OverflowError as error:
            return str(error)

    for head_ps, tail_ps in product(EXTREME_PS, repeat=2):
        for sizes in product((0, 1, 4_096, 1 << 62), repeat=2):
            twin, reference = FifoServer("link", gbs), ReferenceServer("link", gbs)
            for nbytes in sizes:
                message = head_ps, tail_ps, nbytes
                assert served(twin, *message) == served(reference, *message), message
            assert (twin.free_ps, twin.queued_ps) == (reference.free_ps, reference.queued_ps)


def test_counters_are_readable_and_writable_as_in_the_reference() -> None:
    server = FifoServer("twin", 1)
    server.free_ps += 10
    assert server.reserve(0, 0, 1) == (10, 1010)
    assert (server.busy_ps, server.queued_ps, server.nbytes) == (1000, 10, 1)
    assert server.byte_ps == ReferenceServer("reference", 1).byte_ps


@given(st.lists(messages, max_size=150), st.integers(0, 60), st.integers(0, 20))
def test_its_load_over_time_is_that_of_the_reference(
    sent: list[tuple[int, int, int]], before: int, width: int
) -> None:
    server, reference = FifoServer("twin", 64), ReferenceServer("reference", 64)
    # A load that has services already goes on in the server.
    bins, expected = TimeBins(), ReferenceTimeBins()
    time_ps = 0
    for number in range(before):
        time_ps += 2_000
        for each in (bins, expected):
            each.add(time_ps, time_ps + 500, number, 3)
    server.bins, reference.bins = bins, expected
    server.free_ps = reference.free_ps = time_ps + 500
    for later_ps, nbytes, waited_ps in sent:
        time_ps += later_ps
        for each in (server, reference):
            each.bins.waited_ps = waited_ps
            each.reserve(time_ps, time_ps, nbytes)
    assert server.bins.is_used == reference.bins.is_used
    assert server.bins.shift == reference.bins.shift
    for each in (bins, expected):
        each.widen(width)
    assert bins.rows() == expected.rows()
