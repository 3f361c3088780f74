import pytest

from kernbench.explain.trace.selection import parse_interval, parse_ranks, select
from runtime.core.errors import UsageError

TOTAL_PS = 5_000_000


@pytest.mark.parametrize(
    ("text", "ranks"), [("0", (0,)), ("0,2-5", (0, 2, 3, 4, 5)), ("3,1,1-2", (1, 2, 3))]
)
def test_ranks_are_a_list_of_numbers_and_ranges(text, ranks):
    assert parse_ranks(text, 8) == ranks


@pytest.mark.parametrize("text", ["", "a", "1-", "-1", "1;2", "0,", "1.5", "9" * 5000])
def test_ranks_of_another_form_are_refused(text):
    with pytest.raises(UsageError, match="expected ranks such as 0,2-5"):
        parse_ranks(text, 8)


def test_a_reversed_range_of_ranks_is_refused_with_the_right_one():
    with pytest.raises(UsageError, match="a range has its first rank first: 1-2"):
        parse_ranks("2-1", 4)


def test_a_rank_that_the_run_does_not_have_is_refused_with_those_it_has():
    with pytest.raises(UsageError, match="the run has ranks 0 to 3, not 5"):
        parse_ranks("2-5", 4)


@pytest.mark.parametrize(
    ("text", "interval_ps"),
    [
        ("1.5us..2us", (1_500_000, 2_000_000)),
        ("..800ns", (0, 800_000)),
        ("1us..", (1_000_000, TOTAL_PS)),
        ("0.0001ns..7ps", (0, 7)),
        ("0ps..1ms", (0, 1_000_000_000)),
    ],
)
def test_an_interval_has_two_times_with_units(text, interval_ps):
    assert parse_interval(text, TOTAL_PS) == interval_ps


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("1us", r"expected FROM\.\.TO"),
        ("..", r"expected FROM\.\.TO"),
        ("1us..2us..3us", r"expected FROM\.\.TO"),
        ("1..2us", "'1' is no time"),
        ("-1us..2us", "'-1us' is no time"),
        ("1us..2s", "'2s' is no time"),
        ("", r"expected FROM\.\.TO"),
        ("2us..1us", r"from 2,000\.000 ns to 1,000\.000 ns ends before it begins"),
        ("1us..1us", "is empty"),
        ("6us..", r"the run ends at 5,000\.000 ns"),
    ],
)
def test_an_interval_of_another_form_is_refused(text, problem):
    with pytest.raises(UsageError, match=problem):
        parse_interval(text, TOTAL_PS)


def test_without_options_everything_is_selected():
    chosen = select(None, None, 2, TOTAL_PS)

    assert (chosen.sips, chosen.begin_ps, chosen.end_ps) == ((0, 1), 0, TOTAL_PS)
