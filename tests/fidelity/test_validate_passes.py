"""`validate` on the file that ships and on others: each check is within its tolerance."""

import csv
from pathlib import Path

import pytest

from kernbench.cli.main import call
from kernbench.oracle.checks.plan import missed, run
from tests.fidelity.plan import every_part
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
    "w.",
]


@pytest.mark.parametrize("prefix", PREFIXES)
def test_expectations_follow_the_numbers_of_the_file(prefix: str) -> None:
    chosen = [part for part in every_part(7) if part.may_match(prefix)]
    results = list(run(OTHER, chosen, prefix))
    assert results
    assert missed(results) == []


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
    chosen = [part for part in every_part(seed) if part.may_match(prefix)]
    assert missed(run(default_text(), chosen, prefix)) == []


@pytest.mark.multiproc
def test_the_number_of_processes_does_not_change_a_row(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def rows(procs: int) -> str:
        path = tmp_path / f"{procs}.csv"
        assert call(["validate", "--only", "e.", "--procs", str(procs), "--csv", str(path)]) == 0
        return path.read_text()

    assert rows(1) == rows(2)


def test_the_csv_file_has_numbers_in_full_precision(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "checks.csv"
    call(["validate", "--only", "h.stride.", "--procs", "1", "--csv", str(path)])
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    printed = capsys.readouterr().out
    assert {row["verdict"] for row in rows} == {"ok"}
    assert all(
        row["id"] in printed and row["check"] in printed and row["formula"] in printed
        for row in rows
    )
    assert [row["measured"] for row in rows if row["id"] == "h.stride.8"] == ["25.6"]
