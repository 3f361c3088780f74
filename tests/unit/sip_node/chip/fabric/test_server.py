from fractions import Fraction
from itertools import product
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.core.compiled.choice import IS_COMPILED
from runtime.core.simtime import NEVER_PS
from sip_node.chip.fabric.server import Server
from sip_node.chip.records.time_bins import TimeBins
from tests.support.extreme_times import EXTREME_PS
from tests.support.interpreted import interpreted

Interpreted = interpreted("sip_node.chip.fabric.server").Server
InterpretedBins = interpreted("sip_node.chip.records.time_bins").TimeBins
both = pytest.mark.skipif(not IS_COMPILED, reason="the compiled core does not run")

messages = st.lists(
    st.tuples(st.integers(0, 10_000), st.integers(0, 5_000), st.integers(1, 4096)),
    min_size=1,
    max_size=10,
)


@given(messages, st.sampled_from([0.1, 1, 25.6, 128, 204.8, 256]))
def test_a_server_is_fifo_and_never_faster_than_its_bandwidth(
    sent: list[tuple[int, int, int]], gbs: float
) -> None:
    server, free_ps = Server("link", gbs), 0
    for head_ps, spread_ps, nbytes in sorted(sent):
        start_ps, tail_ps = server.reserve(head_ps, head_ps + spread_ps, nbytes)
        assert start_ps == max(head_ps, free_ps)
        assert tail_ps == max(
            start_ps + ceil(nbytes * 1000 / Fraction(str(gbs))), head_ps + spread_ps
        )
        free_ps = tail_ps
    assert server.nbytes == sum(nbytes for _, _, nbytes in sent)
    assert server.busy_ps <= free_ps


def test_an_idle_server_passes_a_slow_message_on_as_it_comes() -> None:
    assert Server("link", 256).reserve(100, 9_000, 256) == (100, 9_000)


def test_serialisation_is_rounded_up() -> None:
    assert [Server("link", 3).serialisation_ps(nbytes) for nbytes in (1, 2, 3)] == [334, 667, 1000]


# How much later a message comes, its bytes, and how long it has waited before.
waiting_messages = st.tuples(
    st.sampled_from([0, 1, 300, 1_024, 50_000, 3_000_000]),
    st.sampled_from([0, 1, 64, 4_096]),
    st.sampled_from([0, 0, 700]),
)


@pytest.mark.parametrize("gbs", [1, 204.8, 12.345678901234567, 0.30000000000000004, 1e-25, 1e25])
@pytest.mark.parametrize("nbytes", [0, 1, 255, 999_999_937])
def test_durations_are_exact_for_any_bandwidth(gbs: float, nbytes: int) -> None:
    server = Server("link", gbs)
    exact_ps = ceil(nbytes * server.byte_ps)
    if exact_ps <= NEVER_PS:
        assert server.serialisation_ps(nbytes) == exact_ps
    else:
        with pytest.raises(OverflowError, match=r"link: .* bytes end later than a run can"):
            server.serialisation_ps(nbytes)


def test_a_duration_is_computed_again_after_another_size() -> None:
    server = Server("link", 3)
    assert [server.serialisation_ps(size) for size in (1, 2, 1, 1, 3)] == [334, 667, 334, 334, 1000]


def test_a_wait_beyond_64_bits_is_an_error_and_not_a_wrong_sum() -> None:
    server = Server("link", 1e-6)
    server.free_ps = server.queued_ps = 3 << 60
    with pytest.raises(OverflowError, match="link: 1 bytes end later than a run can"):
        server.reserve(0, 0, 1)


@both
@pytest.mark.parametrize("gbs", [1, 1e-3, 0.30000000000000004])
def test_extreme_times_are_served_or_refused_as_integers_of_any_size_are(gbs: float) -> None:
    def served(server: Server, *message: int) -> object:
        try:
            return server.reserve(*message)
        except OverflowError as error:
            return str(error)

    for head_ps, tail_ps in product(EXTREME_PS, repeat=2):
        for sizes in product((0, 1, 4_096, 1 << 62), repeat=2):
            server, expected = Server("link", gbs), Interpreted("link", gbs)
            for nbytes in sizes:
                message = head_ps, tail_ps, nbytes
                assert served(server, *message) == served(expected, *message), message
            assert (server.free_ps, server.queued_ps) == (expected.free_ps, expected.queued_ps)


def test_counters_are_readable_and_writable() -> None:
    server = Server("link", 1)
    server.free_ps += 10
    assert server.reserve(0, 0, 1) == (10, 1010)
    assert (server.busy_ps, server.queued_ps, server.nbytes) == (1000, 10, 1)


def test_a_class_of_the_user_serves_and_calls_what_it_replaces() -> None:
    class Late(Server):
        def reserve(self, head_ps: int, tail_ps: int, nbytes: int) -> tuple[int, int]:
            return super().reserve(head_ps + 7, tail_ps + 7, nbytes)

    late = Late("link", 1)
    assert late.is_replaced
    assert not Server("link", 1).is_replaced
    assert [late.reserve(0, 0, 1) for _ in range(2)] == [(7, 1007), (1007, 2007)]
    assert late.is_replaced


@given(st.lists(waiting_messages, max_size=150), st.integers(0, 60), st.integers(0, 20))
@both
def test_its_load_over_time_is_that_of_the_interpreted_text(
    sent: list[tuple[int, int, int]], before: int, width: int
) -> None:
    server, reference = Server("link", 64), Interpreted("link", 64)
    # A load that has services already goes on in the server.
    bins, expected = TimeBins(), InterpretedBins()
    time_ps = 0
    for number in range(before):
        time_ps += 2_000
        for each in (bins, expected):
            each.add(time_ps, time_ps + 500, number, 3, 1)
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
