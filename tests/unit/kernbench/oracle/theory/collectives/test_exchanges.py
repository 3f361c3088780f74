"""The bound of an exchange, on sizes computed by hand."""

import pytest

from kernbench.oracle.theory.collectives.exchanges import ExchangeBound, PartSizes, shares_of
from kernbench.oracle.theory.topology_file import TopologyFile
from runtime.core.config.config_file import default_file, read_text

FILE = TopologyFile.of(read_text(default_file("topology.yaml"))).on_a_ring(4)


def rows(*changed: tuple[int, int, int]) -> PartSizes:
    table = [[0] * 4 for _ in range(4)]
    for source, target, count in changed:
        table[source][target] = count
    return PartSizes(table, 8, 2)


def test_a_part_to_the_opposite_sip_passes_both_links_upwards():
    # From SIP 0 to SIP 2 by SIP 1, with the part to SIP 1: 100 + 50 rows of 16 bytes. They also
    # leave together by column 0, whose name is behind in the order of equal ports.
    found = ExchangeBound(FILE).busiest(rows((0, 2, 100), (0, 1, 50)))
    assert (found.port, found.nbytes) == ("SIP 0 to SIP 1", 150 * 16)


def test_the_ports_of_a_column_bind_if_all_links_bring_their_parts_to_one_sip():
    # From SIPs 1 and 3 by different links, into the same column.
    found = ExchangeBound(FILE).busiest(rows((1, 0, 100), (3, 0, 100)))
    assert (found.port, found.nbytes) == ("SIP 0, IO to column 0", 200 * 16)


def test_the_bound_is_alpha_of_the_nearest_pe_and_the_bytes_at_128_gbs():
    bound = ExchangeBound(FILE)
    far, near = (bound.busiest(rows((0, target, 100))).bound_ps for target in (2, 1))
    # 8 ns a UCIe port, 0.2 ns of wire, 2 ns in the IO NoC: a SIP more costs 18.2 ns.
    assert far - near == pytest.approx(18_200)
    # alpha of PE 0 of cube 0, `KernelCosts.alpha_ps`, whose own tests are those of messages.
    assert near == pytest.approx(219_680 + 1600 / 128 * 1000)


def test_two_exchanges_add_up_on_a_port_and_their_reverse_does_not():
    bound, sizes = ExchangeBound(FILE), rows((0, 1, 100))
    assert bound.busiest(sizes, sizes).nbytes == 2 * bound.busiest(sizes).nbytes
    assert bound.busiest(sizes, sizes.reversed).nbytes == 1600


def test_a_sip_returns_nothing_before_it_has_everything():
    # 100 rows to SIP 1 and back: twice the time of one way, though by different links.
    bound, sizes = ExchangeBound(FILE), rows((0, 1, 100))
    assert bound.there_and_back_ps(sizes) == 2 * bound.busiest(sizes).bound_ps


def test_rows_that_stay_use_no_port():
    with pytest.raises(ValueError, match="no part changes its SIP"):
        ExchangeBound(FILE).busiest(rows((2, 2, 5)))


def test_shares_are_at_least_a_packet_and_differ_by_at_most_an_element():
    assert shares_of(4095, 2, 128) == [4095]
    assert shares_of(4097, 2, 128) == [2049, 2048]
    assert len(shares_of(1 << 20, 2, 8)) == 8
