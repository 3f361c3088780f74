from fractions import Fraction
from math import ceil

from hypothesis import given
from hypothesis import strategies as st

from sip_node.chip.fabric.server import Server

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
