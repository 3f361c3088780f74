"""The study of a mixture of experts: its points, its measurement, its lines and refused flags."""

from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest

from kernbench.cli.main import main
from kernbench.points.driver import PointOptions, measured_points
from kernbench.studies.catalogue import MoeFlags
from kernbench.studies.moe_all_to_all.rows import MoePoint, plan_points
from kernbench.studies.moe_all_to_all.study import (
    MoeStudy,
    drawn_tokens,
    sent_copies,
    wrong_elements,
)
from runtime.core.config.config_file import default_file, read_text
from runtime.core.errors import UsageError
from tests.support.moe_rows import results, row
from tests.support.topologies import variant_text

SMALL = variant_text(
    sip__cube_mesh={"w": 1, "h": 1},
    cube__pe_layout__pe_per_corner=1,
    cube__pe_layout__corners=["NW", "SE"],
)
FLAGS = MoeFlags(ranks="2", exponents="1", tokens=8, hidden=16, experts=4, top_k=2)


def points(flags: MoeFlags = FLAGS) -> tuple[MoePoint, ...]:
    return plan_points(SMALL, read_text(default_file("ccl.yaml")), flags)


def routed(tmp_path: Path, text: str) -> str:
    path = tmp_path / "routing.txt"
    path.write_text(text)
    return str(path)


def test_every_number_of_ranks_has_every_exponent():
    found = [(each.ranks, each.exponent) for each in points(MoeFlags(tokens=4, hidden=8))]
    assert found == [(ranks, a) for ranks in (2, 4, 8) for a in (0, 0.5, 1, 1.5)]


def test_the_bytes_of_a_dispatch_are_those_of_the_file(tmp_path: Path):
    text = "3 0\n1 0\n2 3\n3 2\n"
    [point] = points(replace(FLAGS, routing=routed(tmp_path, text)))
    # Rank 0 has experts 0 and 1: it keeps three copies and sends one; rank 1 keeps all four.
    assert (point.plan.rows, point.tokens, point.top_k) == (((3, 1), (0, 4)), 2, 2)
    found = MoeStudy().measure(point)
    assert (found.loads, found.port_bytes) == ((3, 5), 1 * 16 * 2)
    assert found.port == "SIP 0 to SIP 1"
    assert (found.faults, found.exponent) == ([], None)


@pytest.mark.slow
def test_a_point_is_right_and_the_same_in_another_process():
    study = MoeStudy(FLAGS)
    drawn = points(replace(FLAGS, exponents="0,1"))
    one, two = (
        measured_points(study.measurement(), drawn, PointOptions(procs=procs)) for procs in (1, 2)
    )
    assert one == two
    assert [each.faults for each in one.values()] == [[], []]
    assert all(each.dispatch_ps < each.time_ps for each in one.values())


def test_every_wrong_element_is_counted():
    [point] = points()
    plan, tokens = point.plan, drawn_tokens(point)
    ends = np.cumsum([(0, *rows) for rows in plan.rows], axis=1)
    received = np.concatenate(
        [sent_copies(plan, tokens, rank)[ends[rank, 0] : ends[rank, 1]] for rank in range(2)]
    )
    back = sent_copies(plan, tokens, 0)
    assert wrong_elements(point, plan, tokens, 0, received, back) == 0
    swapped = received[::-1]
    expected = np.count_nonzero(swapped != received)
    assert wrong_elements(point, plan, tokens, 0, swapped, back) == expected > 0
    # A NaN in a copy of a token is one element of the combined token.
    broken = back.copy()
    broken[0, 3] = np.nan
    assert wrong_elements(point, plan, tokens, 0, received, broken) == 1


def test_a_time_below_a_bound_is_a_fault():
    low = msgspec.structs.replace(row(2, None, (4, 4)), time_ps=799_999)
    assert low.faults == ["dispatch and combine: 799,999 ps are less than the bound of 800,000 ps"]
    assert low.label == "2 ranks, exponent file"


def test_a_line_of_the_table_has_the_skew_and_both_ratios(capsys: pytest.CaptureFixture[str]):
    study = MoeStudy(MoeFlags())
    study.print_table(results())
    line = capsys.readouterr().out.splitlines()[4].split()
    # Loads 6 and 2: 6 over the mean 4; 6 x 100 ns, and 10 % more.
    assert line[:3] == ["2", "1", "1.50"]
    assert line[-7:] == ["768", "660.0", "600.0", "1.100", "1,320.0", "1,200.0", "1.100"]
    assert study.passed(results()).endswith("the farthest 2 ranks, exponent 0, 1.10 times it")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--ranks", "2,x"], "--ranks 2,x: 'x' must be a number from 2 to 8"),
        (["--ranks", "9"], "'9' must be a number from 2 to 8"),
        (["--ranks", "2,2"], "--ranks 2,2: each value once"),
        (["--ranks", "3"], "--experts 16: 3 ranks must have equally many, one or more"),
        (["--experts", "0"], "--experts 0: 2 ranks must have equally many, one or more"),
        (["--exponents", "-1"], "--exponents -1: '-1' must be a number from 0 to 20"),
        (["--exponents", "nan"], "'nan' must be a number from 0 to 20"),
        (["--top-k", "17"], "--top-k 17: a token selects different experts, and there are 16"),
        (["--tokens", "0"], "--tokens 0: must be at least 1"),
        # 2 ranks of them: 2 experts of 2048 float16, and 16 scores in float64.
        (["--tokens", "100000"], f"{200_000 * (2 * 4096 + 128):,} bytes over 2 ranks, more than"),
        (["--seed", "-1"], "--seed -1: must be at least 0"),
        (["--routing", "none"], "--routing none cannot be read: No such file or directory"),
        (["--routing", "none", "--tokens", "1"], "--tokens with --routing none: the file has"),
    ],
)
def test_a_bad_flag_is_refused_before_anything_is_simulated(
    arguments: list[str],
    problem: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    monkeypatch.chdir(tmp_path)
    assert main(["--bench", "moe-all-to-all", *arguments]) == 2
    assert problem in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("0 1\n2 3\n0 2\n", "3 tokens cannot be divided equally over 2 ranks"),
        ("0 1\n2 3\n", "2 ranks file: every token stays on its rank"),
    ],
)
def test_a_routing_file_must_fit_the_ranks(text: str, problem: str, tmp_path: Path):
    with pytest.raises(UsageError, match=problem):
        points(replace(FLAGS, routing=routed(tmp_path, text)))
