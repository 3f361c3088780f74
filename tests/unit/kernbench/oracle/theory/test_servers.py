"""The drain of a message through several servers, against the recursion of cut-through."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from kernbench.oracle.theory.servers import Serialiser, drain_ps, packets, serialised_ps

bandwidths = st.integers(1, 4000).map(lambda tenths: Fraction(tenths, 10))
serialisers = st.builds(Serialiser, bandwidths) | st.builds(
    Serialiser, bandwidths, channels=st.sampled_from((2, 4)), burst_bytes=st.sampled_from((8, 16))
)


@given(st.integers(1, 1000), st.sampled_from((64, 128, 192)), st.lists(serialisers, min_size=1))
def test_the_closed_form_is_what_the_recursion_of_the_servers_gives(
    nbytes: int, packet_bytes: int, servers: list[Serialiser]
) -> None:
    free = [0] * len(servers)
    tail = 0
    for size in packets(nbytes, packet_bytes):
        head, tail = 0, 0
        for index, server in enumerate(servers):
            start = max(head, free[index])
            tail = max(start + server.service_ps(size), tail)
            head, free[index] = start, tail
    assert drain_ps(nbytes, packet_bytes, servers) == tail


@given(st.integers(1, 5000), st.integers(1, 600), bandwidths)
def test_on_one_link_packets_follow_each_other(nbytes: int, packet: int, gbs: Fraction) -> None:
    assert drain_ps(nbytes, packet, [Serialiser(gbs)]) == serialised_ps(nbytes, packet, gbs)


def test_bytes_count_on_the_channel_which_gets_most_of_them() -> None:
    # Four channels of 25 GB/s: 80 B are a round of 64 B and one burst of 16 B on the first channel.
    memory = Serialiser(Fraction(100), channels=4, burst_bytes=16)
    assert memory.service_ps(80) == 2 * 16 * 1000 // 25
    assert memory.service_ps(8) == 8 * 1000 // 25
