"""The command `probe`: its tables, its files, and its messages for wrong arguments."""

import csv
import json
from pathlib import Path

import pytest
from rich.cells import cell_len

from kernbench.cli.main import call
from kernbench.measure.transfers.files import FIELDS
from runtime.core.errors import ConfigError, UsageError
from runtime.model.topology import parse_topology
from tests.support.topologies import variant_text

SMALL = variant_text(sip__cube_mesh={"w": 1, "h": 2}, cube__pe_layout__pe_per_corner=1)


@pytest.fixture
def topology(tmp_path: Path) -> str:
    path = tmp_path / "small.yaml"
    path.write_text(SMALL)
    return str(path)


def probe(*arguments: str) -> int:
    return call(["probe", *arguments])


def test_the_tables_show_every_case_with_its_parts_and_both_times(topology: str, capsys) -> None:
    assert probe("--topology", topology) == 0
    lines = capsys.readouterr().out.splitlines()
    [own] = [line.split() for line in lines if line.startswith("dma-own ") and " read " in line]
    expected = (
        "dma-own read cube0.pe0 HBM 58.000 0.000 20.063 78.063 = 78.063 52.47 HBM slice 204.8 25.6"
    )
    assert own == expected.split()
    assert lines[0] == f"# probe {topology}: 2 SIPs, ring_1d direct"
    assert lines[-2:] == [
        "left out: dma-sip-2: the farthest SIP is 1 hop away",
        "24 transfers: measured = closed form, to the picosecond",
    ]
    assert [line.split(",")[0] for line in lines if line.endswith(", 4 KiB")] == [
        "host",
        "own cube",
        "other cube",
        "other SIP",
    ]


@pytest.mark.slow
def test_no_line_is_wider_than_120_columns_and_nothing_is_cut_off(topology: str, capsys) -> None:
    assert probe("--topology", topology, "--bytes", str(1 << 20), "--trace") == 0
    printed = capsys.readouterr().out
    assert max(map(cell_len, printed.splitlines())) <= 120
    assert "…" not in printed


def test_a_trace_ends_at_the_measured_time_and_its_hops_add_up(topology: str, capsys) -> None:
    assert probe("--topology", topology, "--case", "dma-cube-worst", "--trace") == 0
    blocks = capsys.readouterr().out.split("dma-cube-worst read, ")
    lines = blocks[1].splitlines()
    measured = lines[0].partition("measured ")[2].split()[0]
    tails = [line for line in lines if "last byte" in line]
    assert [tail.split()[0] for tail in tails] == ["request", "data"]
    assert tails[-1].split()[-1] == measured
    hops = [line.split() for line in lines if line.startswith(("request cube", "data    cube"))]
    added = sum(float(hop[2]) + float(hop[3]) for hop in hops) + sum(
        float(tail.split()[-2]) for tail in tails
    )
    assert f"{added:.3f}" == measured


def test_a_sweep_has_nine_sizes_of_each_transfer(topology: str, capsys) -> None:
    assert probe("--topology", topology, "--case", "dma-own", "--sweep") == 0
    lines = [
        line.split() for line in capsys.readouterr().out.splitlines() if line.startswith("dma-own ")
    ]
    assert [int(line[4]) for line in lines] == [1 << power for power in range(12, 21)] * 2


def test_the_csv_file_has_the_rows_of_the_tables(topology: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    probe("--topology", topology, "--case", "dma-own", "--case", "h2d-write", "--csv", str(path))
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == FIELDS
    assert [(row["case"], row["operation"]) for row in rows] == [
        ("h2d-write", "write"),
        ("dma-own", "write"),
        ("dma-own", "read"),
    ]
    for row in rows:
        parts_ps = [int(row[part]) for part in ("overhead_ps", "wire_ps", "drain_ps")]
        assert sum(parts_ps) == int(row["closed_form_ps"]) == int(row["measured_ps"])
        assert float(row["effective_gbs"]) == pytest.approx(
            4096_000 / int(row["measured_ps"]), abs=1e-6
        )
    assert rows[1]["bottleneck"] == "cube0.pe0.hbm_ctrl"
    assert rows[0]["bottleneck"] == "host->io.pcie_ep"


def test_the_json_file_has_the_hops_and_what_was_left_out(topology: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    probe("--topology", topology, "--sips", "1", "--json", str(path))
    content = json.loads(path.read_text())
    assert (content["topology"], content["sips"]) == (topology, 1)
    assert set(content["left_out"]) == {"dma-sip-1", "dma-sip-2"}
    [read] = [
        row for row in content["rows"] if (row["case"], row["operation"]) == ("dma-own", "read")
    ]
    request, data = read["legs"]
    assert [hop["into"] for hop in request["hops"]] == [
        "cube0.pe0.dma",
        "cube0.pe0.xbar",
        "cube0.pe0.hbm_ctrl",
    ]
    assert [hop["link_gbs"] for hop in data["hops"]] == [None, 256.0, 256.0]
    hops = [*request["hops"], *data["hops"]]
    assert (
        sum(hop["overhead_ps"] + hop["wire_ps"] for hop in hops)
        + request["drain_ps"]
        + data["drain_ps"]
        == 78_063
    )


def test_a_component_slower_than_in_its_file_is_marked_and_fails(tmp_path: Path, capsys) -> None:
    path = tmp_path / "slow.yaml"
    path.write_text(SMALL + "impl: {hbm_ctrl: examples.slow_hbm:SlowHbm}\n")
    assert probe("--topology", str(path), "--case", "dma-own", "--case", "dma-near-tcm") == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[7:10] for line in lines if line.startswith("dma-own ")] == [
        ["26.063", "≠", "66.063"],
        ["78.063", "≠", "118.063"],
    ]
    assert lines[-1] == "2 of 4 transfers differ from their closed form (marked ≠)"


def test_packets_of_half_a_round_have_a_lower_bound(tmp_path: Path, capsys) -> None:
    path = tmp_path / "packets.yaml"
    path.write_text(variant_text(sip__cube_mesh={"w": 1, "h": 1}, packet_bytes=1024))
    assert (
        probe("--topology", str(path), "--case", "dma-own", "--case", "dma-sram", "--sips", "1")
        == 0
    )
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == "4 transfers: 2 as the closed form, 2 not below their lower bound (marked <=)"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--case", "dma-onw"), "probe: --case: unknown case 'dma-onw'; did you mean 'dma-own'?"),
        (("--case", "dma-sip-2"), "probe: --case dma-sip-2: the farthest SIP is 1 hop away"),
        (("--sweep", "--bytes", "64"), "probe: --sweep has sizes of its own: leave out --bytes 64"),
        (("--bytes", "0"), "probe: --bytes: 0 is not in the range x>=1."),
        (
            ("--bytes", str(17 << 20)),
            "probe: h2d-write-tcm: 17825792 bytes are more than the 16777216 bytes that fit",
        ),
        (("--swep",), "probe: unknown option '--swep'; did you mean '--sweep'?"),
        (
            ("--csv", "/no/such/folder/x.csv", "--case", "dma-own"),
            "probe: --csv: cannot write /no/such/folder/x.csv: No such file or directory",
        ),
        (
            ("--json", "/no/such/folder/x.json", "--case", "dma-own"),
            "probe: --json: cannot write /no/such/folder/x.json: No such file or directory",
        ),
    ],
)
def test_wrong_arguments_are_refused_in_one_line(
    arguments: tuple[str, ...], problem: str, topology: str
) -> None:
    with pytest.raises(UsageError) as refused:
        probe("--topology", topology, *arguments)
    assert str(refused.value).startswith(problem)
    assert "\n" not in str(refused.value)


def test_a_file_that_does_not_exist_is_a_configuration_error() -> None:
    with pytest.raises(ConfigError, match=r"/no/such\.yaml: no such file"):
        probe("--topology", "/no/such.yaml")


def test_the_topology_of_these_tests_is_valid() -> None:
    assert parse_topology(SMALL, "small.yaml").cubes == 2
