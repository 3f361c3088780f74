"""The load of a link in time bins: services are split over bins, and bins double in width."""

from random import Random
from typing import Any

import pytest

from runtime.core.compiled.choice import IS_COMPILED
from runtime.core.run_tables import LEAST_BIN_PS, MOST_BINS
from sip_node.chip.time_bins import LEAST_SHIFT, ReferenceTimeBins, TimeBins

BIN = LEAST_BIN_PS
both = pytest.mark.parametrize("bins", [TimeBins, ReferenceTimeBins], ids=["core", "reference"])
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
        made.add(*each)
    return made


@both
def test_a_service_counts_in_the_bin_of_its_start_and_is_busy_in_all_that_it_spans(
    bins: Any,
) -> None:
    made = bins()
    made.add(100, 600, 64, 30)
    made.add(BIN - 24, 3 * BIN + 10, 128, 0)
    made.add(3 * BIN + 10, 3 * BIN + 20, 32, 7)
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
    made.add(BIN, BIN + 1, 8, 0)
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
    made.add(0, 10, 1, 20)
    made.add(10, 20, 1, 3)
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


@pytest.mark.skipif(not IS_COMPILED, reason="only the core skips periods")
def test_services_of_skipped_periods_count_as_if_they_were_added() -> None:
    rng = Random(3)
    for _ in range(200):
        period_ps = rng.choice((BIN // 7, BIN, 3 * BIN + 11, 100 * BIN))
        period: list[Service] = []
        free_ps = 5 * BIN
        for _ in range(rng.randint(1, 4)):
            start_ps = free_ps + rng.randrange(period_ps // 12 + 1)
            free_ps = start_ps + rng.randrange(period_ps // 8 + 1)
            period.append((start_ps, free_ps, rng.randrange(99), rng.randrange(50)))
        periods = rng.choice((1, 2, 40, 3000))
        simulated, skipped = TimeBins(), TimeBins()
        skipped.begin_log()
        # The first period is the template, the second and the last one are simulated as well.
        for number in range(periods + 3):
            moved = number * period_ps
            if number == 1:
                template = skipped.template(0)
                skipped.end_log()
            if number == 2:
                template.repeat(moved, period_ps, periods)
            for start, end, nbytes, queued in period:
                simulated.add(start + moved, end + moved, nbytes, queued)
                if number in (0, 1, periods + 2):
                    skipped.add(start + moved, end + moved, nbytes, queued)
        assert skipped.rows() == simulated.rows()
        assert skipped.shift == simulated.shift
