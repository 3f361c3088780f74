"""LPs are numbered by host, then by rank."""

from itertools import permutations

import pytest
from msgspec.structs import replace

from coordinator.launch.placement import Placement, place
from runtime.core.errors import ProtocolError
from runtime.wire.control import Hello, LpHost


def hello(rank: int, host: str | None, command: str = "c") -> Hello:
    of_host = None if host is None else LpHost(f"name of {host}", host, "machine")
    return Hello(1, "run", rank, 1, f"tcp://{rank}", host=of_host, command=command)


def test_lps_of_this_process_keep_their_numbers():
    assert place({rank: hello(rank, None) for rank in (1, 0)}) == Placement.on_one_host(2)


def test_interleaved_ranks_become_neighbours_on_their_host():
    hellos = {rank: hello(rank, "AB"[rank % 2]) for rank in range(4)}
    for order in permutations(hellos):
        placement = place({rank: hellos[rank] for rank in order})
        assert placement.ranks == (0, 2, 1, 3)
        assert placement.hosts == (0, 0, 1, 1)
        assert placement.names == ("name of A", "name of B")
        assert placement.lp_of == {0: 0, 2: 1, 1: 2, 3: 3}
        assert placement.host_of(2) == "name of B"


def test_hosts_come_in_the_order_of_their_first_ranks():
    hellos = {rank: hello(rank, host) for rank, host in enumerate("BACA")}
    assert place(hellos).names == ("name of B", "name of A", "name of C")
    assert place(hellos).ranks == (0, 1, 3, 2)


def test_hosts_of_one_machine_have_one_clock():
    hellos = {rank: hello(rank, "AB"[rank]) for rank in range(2)}
    assert place(hellos).machines == 1
    host = LpHost("name", "B", "another machine")
    assert place({0: hellos[0], 1: replace(hellos[1], host=host)}).machines == 2


def test_a_process_with_another_command_line_is_named():
    for wrong in (hello(1, "A", "other"), hello(1, None)):
        with pytest.raises(ProtocolError, match=r"rank 1.*another command line than rank 0"):
            place({0: hello(0, "A"), 1: wrong})
