from math import nan

import pytest

from kernbench.cli.main import call
from kernbench.validate.check import GROUPS, Check, Relation
from kernbench.validate.mesh_checks import reference
from kernbench.validate.mesh_network import NODES, destination, gap
from kernbench.validate.plan import parts
from runtime.core.errors import ConfigError, UsageError
from runtime.core.rng import seeded


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


def test_every_pattern_sends_to_nodes_of_the_mesh_and_permutations_reach_each_once() -> None:
    rng = seeded(1)
    for pattern in ("transpose", "bitcomp", "neighbor"):
        assert sorted(destination(pattern, node, rng) for node in range(NODES)) == list(
            range(NODES)
        )
    assert {destination("uniform", 5, rng) for _ in range(500)} == set(range(NODES))


def test_patterns_are_those_of_the_reference_simulator() -> None:
    rng = seeded(1)
    # Nodes are row * 4 + column: transpose swaps them, bitcomp inverts all four bits, neighbor adds
    # one to each modulo 4.
    assert [destination(pattern, 1, rng) for pattern in ("transpose", "bitcomp", "neighbor")] == [
        4,
        14,
        6,
    ]
    assert destination("neighbor", 15, rng) == 0


@pytest.mark.parametrize("rate", [0.05, 0.5, 0.95])
def test_gaps_of_a_bernoulli_process_have_its_mean(rate: float) -> None:
    rng, count = seeded(3), 20_000
    gaps = [gap(rng, rate) for _ in range(count)]
    assert min(gaps) == 1
    assert sum(gaps) / count == pytest.approx(1 / rate, rel=0.03)


def test_at_full_load_there_is_a_packet_every_cycle() -> None:
    assert {gap(seeded(1), 1.0) for _ in range(9)} == {1}


def test_the_reference_is_shipped_with_twenty_loads() -> None:
    latencies = reference()
    assert len(latencies) == 20
    assert latencies[0.95] == 27.2627
    assert list(latencies.values()) == sorted(latencies.values())


def test_all_loads_of_the_reference_are_run_in_full() -> None:
    run = {part.args[1] for part in parts(1, full=True) if part.prefix.startswith("e.uniform")}
    assert run == set(reference())


@pytest.mark.parametrize(
    ("only", "groups"),
    [
        ("", "".join(GROUPS)),
        ("e.uniform.0.95", "e"),
        ("c.sink.8", "c"),
        ("f.little", "f"),
        ("j.fed.2", "j"),
        ("zz", ""),
    ],
)
def test_only_the_parts_that_can_match_are_run(only: str, groups: str) -> None:
    chosen = [part for part in parts(1, full=False) if part.may_match(only)]
    assert sorted({part.prefix[0] for part in chosen}) == list(groups)


def test_list_names_every_group_and_runs_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["validate", "--list"]) == 0
    assert [line[0] for line in capsys.readouterr().out.splitlines()] == list(GROUPS)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--only", "zz"], "no check has an id that starts with this"),
        (["--mesh"], "at least one --load"),
        (["--mesh", "--load", "0.1", "--csv", "x.csv"], "--csv belongs to the checks"),
        (["--load", "0.5"], "--load belongs to --mesh"),
        (["--mesh", "--load", "1.5"], "--load"),
        (["--mesh", "--load", "0.5", "--pattern", "tornado"], "--pattern"),
        (["--sed", "1"], "did you mean '--seed'"),
    ],
)
def test_invalid_arguments_are_refused_in_one_line(arguments: list[str], problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        call(["validate", *arguments])


def test_a_missing_topology_file_is_a_configuration_error() -> None:
    with pytest.raises(ConfigError, match="no such file"):
        call(["validate", "--topology", "nowhere.yaml"])
