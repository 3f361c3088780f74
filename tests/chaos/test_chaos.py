"""A part of `make chaos`: some cases of each series, and the table that it writes."""

from collections.abc import Iterator
from pathlib import Path
from signal import Signals

import pytest

from tests.chaos.busy_cores import busy_cores
from tests.chaos.damage import DAMAGES
from tests.chaos.faults import KINDS, drawn_fault
from tests.chaos.outcome import Outcome
from tests.chaos.page import BEGIN, END, table, write_table
from tests.chaos.series import NAMES, Series, all_series

# On one worker: what keeps the cores busy runs once.
pytestmark = pytest.mark.xdist_group("chaos")

SEED = 20
PART = {"signals": 8, "frames": 2, "limits": 4, "damage": 6}
"""Cases of each series that every nightly run repeats."""


@pytest.fixture(scope="module")
def series(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Series]]:
    with busy_cores():
        yield all_series(SEED, tmp_path_factory.mktemp("chaos"))


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.multiproc
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", NAMES)
def test_a_disturbed_run_ends_with_one_error_or_is_not_affected(
    name: str, series: dict[str, Series], monkeypatch: pytest.MonkeyPatch
):
    # Otherwise each process compiles all that it imports.
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    chosen = series[name]
    # Spread over the whole series.
    numbers = [place * chosen.size // PART[name] for place in range(PART[name])]
    outcomes = dict(chosen.outcomes(numbers))
    failed = {
        number: (each.case, each.problems, each.output)
        for number, each in outcomes.items()
        if each.problems
    }
    assert failed == {}


def test_a_fault_depends_on_the_seed_and_its_number_alone():
    faults = [drawn_fault(SEED, number) for number in range(240)]
    assert [drawn_fault(SEED, number) for number in (239, 7)] == [faults[239], faults[7]]
    assert [drawn_fault(SEED + 1, number) for number in range(240)] != faults
    assert {each.kind for each in faults} == set(KINDS)


def test_the_targets_are_of_the_lps_that_run():
    faults = [drawn_fault(SEED, number) for number in range(240)]
    running = {0: 40, 2: 42, 1: 41}
    assert all(fault.lps({}) == [] for fault in faults)
    assert {tuple(fault.lps(running)) for fault in faults if fault.kind.lps == 1} == {
        (40,),
        (41,),
        (42,),
    }
    assert {tuple(fault.lps(running)) for fault in faults if fault.kind.lps < 0} == {(40, 41, 42)}


def test_a_signal_that_nothing_survives_is_not_expected_to_be_harmless():
    fatal = {Signals.SIGKILL, Signals.SIGSEGV, Signals.SIGTERM}
    assert not any(fatal & set(kind.signals) for kind in KINDS if kind.harmless)


def test_there_are_as_many_kinds_of_damage_as_required():
    assert len(DAMAGES) == len({name for name, _, _ in DAMAGES}) >= 60


def test_the_table_counts_cases_by_kind_and_names_those_that_did_not_run(tmp_path: Path):
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    outcomes = [
        Outcome("a", "1"),
        Outcome("b", "2", problems=["wrong"]),
        Outcome("a", "3", skipped="no root"),
    ]
    write_table(page, outcomes)
    assert page.read_text() == f"before\n{BEGIN}\n\n{table(outcomes)}\n\n{END}\nafter\n"
    assert table(outcomes).splitlines()[2:] == [
        "| a | 1 | 1 | 0 |",
        "| b | 1 | 0 | 1 |",
        "| **all** | 2 | 1 | 1 |",
        "",
        "Not run: 3: no root.",
    ]


@pytest.mark.parametrize(
    ("errors", "problems"),
    [
        ("kernbench: error: LP 1\n", []),
        ("", ["0 errors in place of one", "the error does not match 'LP'"]),
        ("kernbench: error: LP\nkernbench: error: LP\n", ["2 errors in place of one"]),
        ("Traceback (most recent call last):\nkernbench: error: LP\n", ["a traceback"]),
    ],
)
def test_one_error_is_required_and_no_traceback(errors: str, problems: list[str]):
    outcome = Outcome("kind", "case")
    outcome.require_one_error(1, errors, "LP")
    assert outcome.problems == problems
