"""The loads of servers in C: their services come in one batch, and count as in the reference."""

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.core.compiled.choice import IS_COMPILED
from runtime.core.run_tables import LEAST_BIN_PS, MOST_BINS
from sip_node.chip.run_recorder import RunRecorder
from sip_node.chip.time_bins import ReferenceTimeBins

if not IS_COMPILED:
    pytest.skip("the compiled core does not run", allow_module_level=True)

from sip_node.compiled.link_loads import LinkLoads
from sip_node.compiled.server import FifoServer
from sip_node.compiled.time_bins import TimeBins

BIN = LEAST_BIN_PS
LARGE = (1 << 32) - 1
"""The largest number of a service that fits into a batch."""


def dropped(_table: str, _rows: bytes, _texts: tuple[str, ...]) -> None:
    pass


class Loads:
    """Servers that share a batch, and the bins of the reference for each."""

    def __init__(self, count: int) -> None:
        self.servers = [FifoServer(f"server {number}", 64) for number in range(count)]
        LinkLoads(RunRecorder(dropped)).watch("link", *self.servers)
        self.bins: list[Any] = [each.bins for each in self.servers]
        self.expected = [ReferenceTimeBins() for _ in self.servers]

    def add(self, number: int, *service: int) -> None:
        for each in (self.bins[number], self.expected[number]):
            each.add(*service)

    def check(self) -> None:
        """Every server has the bins of the reference, in a width for all of them."""
        shift = max(each.shift for each in (*self.bins, *self.expected))
        assert shift == max(each.shift for each in self.expected)
        for bins, expected in zip(self.bins, self.expected, strict=True):
            assert bins.is_used == expected.is_used
            for each in (bins, expected):
                each.widen(shift)
            assert bins.rows() == expected.rows()


@pytest.mark.parametrize("count", [5, 1023, 1024, 1025, 2100])
@pytest.mark.parametrize("gaps", [(0, 0, 1), (0, BIN - 1, BIN), (0, 5 * BIN, 300 * BIN)])
def test_services_of_many_servers_count_as_in_the_reference(
    count: int, gaps: tuple[int, ...]
) -> None:
    rng = Random(count)
    loads = Loads(9)
    free_ps = [0] * 9
    for _ in range(count):
        number = rng.randrange(9)
        start_ps = free_ps[number] + rng.choice(gaps)
        free_ps[number] = start_ps + rng.choice((0, 1, 17, BIN, 5 * BIN))
        loads.add(number, start_ps, free_ps[number], rng.randrange(5000), rng.choice(gaps))
        if not rng.randrange(900):
            # What is read in between is what has been added until then.
            assert loads.bins[number].rows() or not loads.expected[number].rows()
    loads.check()


@pytest.mark.parametrize("number", [LARGE, LARGE + 1])
@pytest.mark.parametrize("field", range(5))
def test_numbers_of_any_size_count_as_in_the_reference(field: int, number: int) -> None:
    loads = Loads(2)
    # Time before, duration, bytes, queued time, packets.
    gap_ps, busy_ps, *rest = (number if each == field else 7 for each in range(5))
    end_ps = 10 + gap_ps + busy_ps
    for server in (0, 1):
        loads.add(server, 0, 10, 64, 5)
    loads.add(0, 10 + gap_ps, end_ps, *rest)
    for server in (0, 1):
        loads.add(server, end_ps, end_ps + 10, 64, 5)
    loads.check()


def test_the_last_service_of_a_batch_may_begin_before_others() -> None:
    loads = Loads(2)
    last = 16 * MOST_BINS * BIN - 1
    loads.add(1, last, last, 8, 0)
    loads.add(0, 0, 1, 8, 0)
    # A service without time is in the bin of its start.
    assert [each.rows() for each in loads.bins] == [
        [(0, 8, 1, 0, 1)],
        [(MOST_BINS - 1, 8, 0, 0, 1)],
    ]
    loads.check()


@settings(max_examples=40)
@given(
    before=st.integers(0, 9),
    period_ps=st.sampled_from((700, BIN, 37 * BIN)),
    begin_ps=st.sampled_from((0, 11, 40 * BIN)),
    shares=st.lists(st.integers(0, 99), min_size=3, max_size=3),
    periods=st.integers(1, 90),
)
def test_periods_are_skipped_while_the_batch_has_services_of_other_servers(
    before: int, period_ps: int, begin_ps: int, shares: list[int], periods: int
) -> None:
    loads = Loads(4)
    starts = [share * period_ps // 200 for share in shares]

    def period(at_ps: int, targets: list[Any]) -> None:
        for bins, start_ps in zip(targets, starts, strict=True):
            bins.add(at_ps + start_ps, at_ps + start_ps + period_ps // 3, 64, start_ps)

    # The last server is not in the machine that is skipped; of its services, the batch is nearly
    # full.
    for number in range(1015 + before):
        loads.add(3, number, number + 1, 1, 2)
    period(begin_ps, loads.bins[:3])
    for bins in loads.bins[:3]:
        bins.begin_log()
        assert bins.logged == 0
    period(begin_ps + period_ps, loads.bins[:3])
    assert [each.logged for each in loads.bins] == [1, 1, 1, 0]
    templates = [bins.template(0) for bins in loads.bins[:3]]
    for bins in loads.bins[:3]:
        bins.end_log()
    # Simulated after the period that is repeated.
    period(begin_ps + 2 * period_ps, loads.bins[:3])
    for template in templates:
        template.repeat(2 * period_ps, period_ps, periods)
    period(begin_ps + (periods + 3) * period_ps, loads.bins[:3])
    for number in range(periods + 4):
        period(begin_ps + number * period_ps, loads.expected[:3])
    loads.check()


def test_bins_alone_have_a_batch_of_their_own() -> None:
    one, other = TimeBins(), TimeBins()
    one.add(0, 10, 64, 3)
    other.add(9 * MOST_BINS * BIN, 9 * MOST_BINS * BIN + 1, 32, 0)
    assert one.rows() == [(0, 64, 10, 3, 1)]
    assert one.shift < other.shift
