"""`validate` on the file that ships and on others: each check is within its tolerance."""

import csv
from pathlib import Path

import pytest

from kernbench.cli.main import call, main
from kernbench.theory.topology_file import TopologyFile
from kernbench.validate.mesh_network import MeshNetwork, MeshRouter, Traffic
from kernbench.validate.plan import missed, parts, run
from tests.support.topologies import default_text, variant_text

pytestmark = [pytest.mark.fidelity, pytest.mark.slow]

OTHER = variant_text(
    sip__cube_mesh={"w": 3, "h": 1},
    sip__io_chiplet__edge="E",
    ucie={"overhead_ns": 2.3, "bw_gbs": 77.7},
    cube__noc__link_bw_gbs=111.1,
    cube__noc__router_overhead_ns=0.7,
    cube__pe_layout__pe_per_corner=1,
    hbm__num_pcs=16,
    hbm__burst_bytes=128,
    cube__hbm_ctrl__efficiency=0.91,
    pe__tcm__bw_gbs=333.3,
    control_bytes=24,
    pe__tile={"m": 48, "k": 40, "n": 24},
    pe__fetch_store__bw_gbs=301.5,
    pe__gemm={
        "model": "systolic_os",
        "macs_per_cycle": 1000,
        "clock_ghz": 1.3,
        "rows": 24,
        "cols": 12,
    },
    system__sips={"count": 9, "topology": "torus_2d", "fabric": "switch", "spacing_mm": 31.0},
)


PREFIXES = [
    "a.0.",
    "a.1.",
    "b.",
    "c.",
    "d.0.5.",
    "e.zero",
    "e.uniform.0.4",
    "f.",
    "g.",
    "h.",
    "i.c",
    "i.drawn.",
    "i.h",
    "i.mesh.",
    "i.r",
    "i.sums.",
    "i.torus.2.",
    "i.tree.",
    "j.",
    "k.",
    "l.",
    "n.",
]


@pytest.mark.parametrize("prefix", PREFIXES)
def test_expectations_follow_the_numbers_of_the_file(prefix: str) -> None:
    chosen = [part for part in parts(7, full=False) if part.may_match(prefix)]
    found = list(run(OTHER, chosen, prefix))
    assert found
    assert missed(found) == []


DRAWN = [
    ("a.", 11),
    ("j.b", 11),
    ("j.b", 12),
    ("j.systolic.", 11),
    ("j.systolic.", 12),
    ("k.", 11),
    ("k.", 12),
]
DEFAULT_SEED = 1
# Their other loads take half of the time of `validate`, which `make test-nightly` runs.
LOADED = ["d.0.8.", "e.zero", "e.uniform.0.6"]


@pytest.mark.parametrize(
    ("prefix", "seed"), [*DRAWN, *((prefix, DEFAULT_SEED) for prefix in LOADED)]
)
def test_random_checks_pass_with_other_seeds(prefix: str, seed: int) -> None:
    chosen = [part for part in parts(seed, full=False) if part.may_match(prefix)]
    assert missed(run(default_text(), chosen, prefix)) == []


@pytest.mark.multiproc
def test_the_number_of_processes_does_not_change_a_row(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def rows(procs: int) -> str:
        path = tmp_path / f"{procs}.csv"
        assert call(["validate", "--only", "a.1", "--procs", str(procs), "--csv", str(path)]) == 0
        return path.read_text()

    assert rows(1) == rows(2)


def test_the_csv_file_has_numbers_in_full_precision(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "checks.csv"
    call(["validate", "--only", "h.", "--procs", "1", "--csv", str(path)])
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    printed = capsys.readouterr().out
    assert {row["verdict"] for row in rows} == {"ok"}
    assert all(
        row["id"] in printed and row["check"] in printed and row["formula"] in printed
        for row in rows
    )
    assert [row["measured"] for row in rows if row["id"] == "h.stride.8"] == ["25.6"]


@pytest.mark.parametrize(
    ("pattern", "mean_hops"), [("transpose", 3.5), ("bitcomp", 5.0), ("neighbor", 4.0)]
)
def test_other_patterns_take_their_zero_load_latency_at_low_load(
    pattern: str, mean_hops: float
) -> None:
    # Mean number of routers: 1 + 2 x 1.25 (|row - column| twice), 1 + 4 (opposite corners), 1 + 2 x
    # 1.5 (one hop, or three hops back, in each dimension).
    outcome = MeshNetwork(TopologyFile.of(default_text())).run(
        Traffic(pattern, 0.01, 1, 1), 3_000, 300
    )
    assert outcome.latency_cycles == pytest.approx(3 * mean_hops + 2, rel=0.05)
    assert outcome.accepted == pytest.approx(0.01, rel=0.3)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--vcs", "3"], "--vcs belongs to --mesh"),
        (["--seed", "1", "--seed", "2"], "several --seed belong to --mesh"),
        (["--mesh"], "--mesh needs at least one --load"),
        (["--mesh", "--load", "0.1", "--vcs", "3"], "--vcs belongs to --flow-control credits"),
        (["--mesh", "--load", "0.1", "--pattern", "ring"], "'uniform', 'transpose', 'bitcomp'"),
    ],
)
def test_a_wrong_option_of_the_mesh_is_named(
    arguments: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["validate", *arguments]) == 2
    assert problem in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize(("load", "status"), [("0.1", "stable"), ("0.95", "unstable")])
def test_a_mesh_with_credits_is_stable_or_not(load: str, status: str) -> None:
    router = MeshRouter("credits", 3, 2, 4)
    seen = MeshNetwork(TopologyFile.of(default_text()), router).run(
        Traffic("hotspot", float(load), 1, 1), 600, 60, drains=False
    )
    assert seen.stable == (status == "stable")


def test_traffic_on_the_mesh_is_printed_as_csv(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [
        "--mesh",
        "--pattern",
        "neighbor",
        "--load",
        "0.02",
        "--load",
        "0.01",
        "--flits",
        "8",
        "--seed",
        "3",
    ]
    assert call(["validate", *arguments]) == 0
    header, *lines = capsys.readouterr().out.splitlines()
    assert header == (
        "flow_control,router_stages,vcs,buffer_flits,pattern,flits,offered,seed,"
        "avg_latency_cycles,accepted,status"
    )
    assert [line.split(",")[:8] for line in lines] == [
        ["unlimited", "", "", "", "neighbor", "8", "0.02", "3"],
        ["unlimited", "", "", "", "neighbor", "8", "0.01", "3"],
    ]
    # Four routers on average: 3 x 4 + 1 + 8 cycles, and short waits.
    assert 20.5 < float(lines[1].split(",")[8]) < 22
