from math import nan

import pytest

from kernbench.cli.main import call
from kernbench.oracle.checks.check import GROUPS, Check, Relation
from kernbench.oracle.checks.plan import parts
from runtime.core.errors import ConfigError, UsageError


def check(
    expected: float, measured: float, tolerance: float, relation: Relation = Relation.EQUAL
) -> Check:
    return Check(
        id="x.1",
        text="",
        formula="",
        expected=expected,
        measured=measured,
        unit="ns",
        tolerance=tolerance,
        relation=relation,
    )


@pytest.mark.parametrize(
    ("measured", "verdict"), [(100, "ok"), (102, "ok"), (98, "ok"), (102.1, "MISS"), (97.9, "MISS")]
)
def test_a_check_passes_within_its_tolerance_on_either_side(measured: float, verdict: str) -> None:
    assert check(100, measured, 0.02).verdict == verdict


def test_an_exact_check_allows_no_picosecond() -> None:
    assert check(10**9, 10**9, 0).passed
    assert not check(10**9, 10**9 + 1, 0).passed
    assert not check(0, 1, 0).passed


def test_below_an_upper_bound_every_value_passes() -> None:
    assert check(100, 1, 0, Relation.AT_MOST).passed
    assert not check(100, 101, 0, Relation.AT_MOST).passed


@pytest.mark.parametrize("relation", Relation)
def test_a_missing_result_is_a_miss(relation: Relation) -> None:
    assert check(1, nan, 0.5, relation).verdict == "MISS"
    assert check(0, nan, 0, relation).verdict == "MISS"


@pytest.mark.parametrize(
    ("only", "groups"),
    [
        ("", "".join(GROUPS)),
        ("e.route.credits", "e"),
        ("c.sink.8", "c"),
        ("f.busy", "f"),
        ("j.fed.2", "j"),
        ("zz", ""),
    ],
)
def test_only_the_parts_that_can_match_are_run(only: str, groups: str) -> None:
    chosen = [part for part in parts(1) if part.may_match(only)]
    assert sorted({part.prefix[0] for part in chosen}) == list(groups)


def test_list_names_every_group_and_runs_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["validate", "--list"]) == 0
    assert [line[0] for line in capsys.readouterr().out.splitlines()] == list(GROUPS)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--only", "zz"], "no check has an id that starts with this"),
        (["--sed", "1"], "did you mean '--seed'"),
    ],
)
def test_invalid_arguments_are_refused_in_one_line(arguments: list[str], problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        call(["validate", *arguments])


def test_a_missing_topology_file_is_a_configuration_error() -> None:
    with pytest.raises(ConfigError, match="no such file"):
        call(["validate", "--topology", "nowhere.yaml"])
