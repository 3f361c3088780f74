"""The load of a link in time bins: services are split over bins, and bins double in width."""

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.core.compiled.choice import IS_COMPILED
from runtime.core.run_tables import LEAST_BIN_PS, MOST_BINS
from sip_node.chip.fabric.server import Server
from sip_node.chip.records.link_loads import LinkLoads
from sip_node.chip.records.run_recorder import RunRecorder
from sip_node.chip.records.time_bins import LEAST_SHIFT, TimeBins
from tests.support.interpreted import interpreted

BIN = LEAST_BIN_PS
InterpretedBins = interpreted("sip_node.chip.records.time_bins").TimeBins
both = pytest.mark.parametrize("bins", [TimeBins, InterpretedBins], ids=["core", "interpreted"])
Service = tuple[int, int, int, int]
"""Start, end, bytes, queued time."""


def services(seed: int, last_ps: int, count: int = 60) -> list[Service]:
    rng, free_ps, found = Random(seed), 0, list[Service]()
    for _ in range(count):
        start_ps = free_ps + rng.choice((0, 0, 1, BIN, 3 * BIN + 7, last_ps // count))
        free_ps = start_ps + rng.choice((0, 1, 17, BIN, 5 * BIN))
        found.append((start_ps, free_ps, rng.randrange(5000), rng.randrange(3 * BIN)))
    return found


def filled(bins: Any, added: list[Service]) -> Any:
    made = bins()
    for each in added:
        made.add(*each, 1)
    return made


@both
def test_a_service_counts_in_the_bin_of_its_start_and_is_busy_in_all_that_it_spans(
    bins: Any,
) -> None:
    made = bins()
    made.add(100, 600, 64, 30, 1)
    made.add(BIN - 24, 3 * BIN + 10, 128, 0, 1)
    made.add(3 * BIN + 10, 3 * BIN + 20, 32, 7, 1)
    assert made.rows() == [
        (0, 192, 500 + 24, 30, 2),
        (1, 0, BIN, 0, 0),
        (2, 0, BIN, 0, 0),
        (3, 32, 20, 7, 1),
    ]


@both
def test_bins_without_a_service_are_left_out(bins: Any) -> None:
    assert [
        row[0] for row in filled(bins, [(0, 1, 1, 0), (400 * BIN, 400 * BIN, 0, 0)]).rows()
    ] == [
        0,
        400,
    ]


@both
def test_bins_are_used_from_the_first_service_on(bins: Any) -> None:
    made = bins()
    assert not made.is_used
    made.add(BIN, BIN + 1, 8, 0, 1)
    assert made.is_used
    assert len(made.rows()) == 1
    assert made.is_used


@both
def test_bins_that_are_widened_are_those_of_a_wide_run(bins: Any) -> None:
    added = services(3, 400 * BIN)
    made, last = filled(bins, added), (8 * MOST_BINS - 1) * BIN
    made.widen(made.shift + 3)
    wide = filled(bins, [*added, (last, last + 1, 5, 0)])
    assert made.shift == wide.shift == LEAST_SHIFT + 3
    assert made.rows() == wide.rows()[:-1]
    before = made.rows()
    made.widen(made.shift - 1)
    assert made.rows() == before


@both
def test_the_wait_in_a_queue_before_counts_for_the_next_service(bins: Any) -> None:
    made = bins()
    made.waited_ps = 500
    made.add(0, 10, 1, 20, 1)
    made.add(10, 20, 1, 3, 1)
    assert made.rows() == [(0, 2, 20, 523, 2)]


@both
@pytest.mark.parametrize("last", [MOST_BINS - 1, MOST_BINS, 2 * MOST_BINS, 1000 * MOST_BINS + 3])
def test_the_width_is_the_least_for_which_the_bins_suffice(bins: Any, last: int) -> None:
    made = filled(bins, [(0, 1, 1, 0), (last * BIN, last * BIN + 1, 1, 0)])
    rows = made.rows()
    assert made.shift - LEAST_SHIFT == max(0, last.bit_length() - 9)
    assert [row[0] for row in rows] == [0, last >> (made.shift - LEAST_SHIFT)]
    assert rows[-1][0] < MOST_BINS


@both
def test_a_service_to_the_end_of_the_last_bin_needs_no_wider_ones(bins: Any) -> None:
    made = filled(bins, [(0, MOST_BINS * BIN, 7, 0)])
    assert made.rows() == [(0, 7, BIN, 0, 1), *((at, 0, BIN, 0, 0) for at in range(1, MOST_BINS))]
    assert made.shift == LEAST_SHIFT


@both
def test_services_of_a_server_are_repeated_onto_another_one(bins: Any) -> None:
    first, other = bins(), bins()
    first.begin_log()
    first.add(0, 10, 7, 3, 1)
    first.template(0).onto(other).repeat(BIN, 2 * BIN, 2)
    assert other.rows() == [(1, 7, 10, 3, 1), (3, 7, 10, 3, 1)]
    assert first.rows() == [(0, 7, 10, 3, 1)]


@both
@pytest.mark.parametrize("last_ps", [BIN, 1000 * BIN, 50_000 * BIN])
def test_bins_keep_all_that_is_added_and_none_is_busy_for_longer_than_it_lasts(
    bins: Any, last_ps: int
) -> None:
    for seed in range(4):
        added = services(seed, last_ps)
        made = filled(bins, added)
        rows = made.rows()
        width_ps = 1 << made.shift
        assert [sum(column) for column in zip(*rows, strict=True)][1:] == [
            sum(nbytes for _, _, nbytes, _ in added),
            sum(end - start for start, end, _, _ in added),
            sum(queued for *_, queued in added),
            len(added),
        ]
        numbers = [row[0] for row in rows]
        assert numbers == sorted(set(numbers))
        for number, nbytes, busy_ps, _, packets in rows:
            begin_ps, end_ps = number * width_ps, (number + 1) * width_ps
            inside = [each for each in added if begin_ps <= each[0] < end_ps]
            assert (packets, nbytes) == (len(inside), sum(each[2] for each in inside))
            assert busy_ps <= width_ps
            assert busy_ps == sum(
                max(0, min(end, end_ps) - max(start, begin_ps)) for start, end, *_ in added
            )


@pytest.mark.parametrize(
    ("bins", "draws"), [(TimeBins, 200), (InterpretedBins, 10)], ids=["core", "interpreted"]
)
def test_services_of_skipped_periods_count_as_if_they_were_added(bins: Any, draws: int) -> None:
    rng = Random(3)
    for _ in range(draws):
        period_ps = rng.choice((BIN // 7, BIN, 3 * BIN + 11, 100 * BIN))
        period: list[Service] = []
        free_ps = 5 * BIN
        for _ in range(rng.randint(1, 4)):
            start_ps = free_ps + rng.randrange(period_ps // 12 + 1)
            free_ps = start_ps + rng.randrange(period_ps // 8 + 1)
            period.append((start_ps, free_ps, rng.randrange(99), rng.randrange(50)))
        periods = rng.choice((1, 2, 40, 3000))
        simulated, skipped = bins(), bins()
        skipped.begin_log()
        assert skipped.logged == 0
        # The first period is the template, the second and the last one are simulated as well.
        for number in range(periods + 3):
            moved = number * period_ps
            if number == 1:
                assert skipped.logged == len(period)
                template = skipped.template(0)
                skipped.end_log()
                assert skipped.logged == 0
            if number == 2:
                template.repeat(moved, period_ps, periods)
            for start, end, nbytes, queued in period:
                simulated.add(start + moved, end + moved, nbytes, queued, 1)
                if number in (0, 1, periods + 2):
                    skipped.add(start + moved, end + moved, nbytes, queued, 1)
        assert skipped.rows() == simulated.rows()
        assert skipped.shift == simulated.shift


# Services of several servers in one batch: in C alone.
compiled = pytest.mark.skipif(not IS_COMPILED, reason="the compiled core does not run")
LARGE = (1 << 32) - 1
"""The largest number of a service that fits into a batch."""


def dropped(_table: str, _rows: bytes, _texts: tuple[str, ...]) -> None:
    pass


class Loads:
    """Servers that share a batch, and the bins of the reference for each."""

    def __init__(self, count: int) -> None:
        self.servers = [Server(f"server {number}", 64) for number in range(count)]
        LinkLoads(RunRecorder(dropped)).watch("link", *self.servers)
        self.bins: list[Any] = [each.bins for each in self.servers]
        self.expected = [InterpretedBins() for _ in self.servers]

    def add(
        self, number: int, start_ps: int, end_ps: int, nbytes: int, queued_ps: int, packets: int = 1
    ) -> None:
        for each in (self.bins[number], self.expected[number]):
            each.add(start_ps, end_ps, nbytes, queued_ps, packets)

    def check(self) -> None:
        """Every server has the bins of the reference, in a width for all of them."""
        shift = max(each.shift for each in (*self.bins, *self.expected))
        assert shift == max(each.shift for each in self.expected)
        for bins, expected in zip(self.bins, self.expected, strict=True):
            assert bins.is_used == expected.is_used
            for each in (bins, expected):
                each.widen(shift)
            assert bins.rows() == expected.rows()


@compiled
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


@compiled
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


@compiled
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


@compiled
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
            bins.add(at_ps + start_ps, at_ps + start_ps + period_ps // 3, 64, start_ps, 1)

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


@compiled
def test_bins_alone_have_a_batch_of_their_own() -> None:
    one, other = TimeBins(), TimeBins()
    one.add(0, 10, 64, 3, 1)
    other.add(9 * MOST_BINS * BIN, 9 * MOST_BINS * BIN + 1, 32, 0, 1)
    assert one.rows() == [(0, 64, 10, 3, 1)]
    assert one.shift < other.shift
