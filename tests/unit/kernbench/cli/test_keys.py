"""`kernbench keys`: the table, the details of some keys, and names that no key has."""

import json

import pytest

from kernbench.cli.keys import matching
from kernbench.cli.main import main
from runtime.model.keys import hardware_keys
from runtime.model.schema.meanings import KeyGroup


def test_the_table_has_a_line_for_every_key(capsys: pytest.CaptureFixture[str]):
    assert main(["keys"]) == 0
    heading, _, *lines = capsys.readouterr().out.splitlines()
    assert heading.split() == ["key", "unit", "value", "allowed", "what", "it", "acts", "on"]
    assert [line.split()[0] for line in lines] == [key.path for key in hardware_keys()]
    (line,) = [line for line in lines if line.startswith("ucie.bw_gbs ")]
    assert line.split(maxsplit=6) == [
        *("ucie.bw_gbs", "GB/s", "128", "0.001", "to", "1,000,000"),
        "each direction of a UCIe link",
    ]


def test_a_key_in_full_is_shown_with_its_details(capsys: pytest.CaptureFixture[str]):
    assert main(["keys", "pe.dma.overhead_ns"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "pe.dma.overhead_ns",
        "  acts on          start of a request",
        "  unit             ns",
        "  value            2",
        "  allowed          number, 0 to 1,000,000,000",
        "  omitted          an error",
        "  random machines  half of the value to twice it, 0 to 50 where it is 0 or null",
        f"  commands         {KeyGroup.DELAY.value}; {KeyGroup.WHAT_IF.value}",
        "  since            version 1 of the schema",
        "",
    ]


def test_a_key_that_may_be_omitted_shows_its_default(capsys: pytest.CaptureFixture[str]):
    assert main(["keys", "host.copy_overhead_ns"]) == 0
    assert "  omitted          null\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "paths"),
    [
        # The key in full, although it is a part of another one.
        ("pe.tcm_mb", ["pe.tcm_mb"]),
        (
            "pe.dma",
            [
                f"pe.dma.{name}"
                for name in ("overhead_ns", "gather_row_ns", "channels", "outstanding")
            ],
        ),
        # A section counts before a part of a name: `impl.ucie` and `cube.ucie_pos_mm` do not.
        ("ucie", ["ucie.overhead_ns", "ucie.bw_gbs"]),
        ("t_r", [f"hbm.banks.t_{name}_ns" for name in ("rcd", "rp", "ras", "rrd", "refi", "rfc")]),
    ],
)
def test_a_name_is_a_key_or_a_section_or_a_part(name: str, paths: list[str]):
    assert [key.path for key in matching(name)] == paths


def test_json_has_the_same_keys(capsys: pytest.CaptureFixture[str]):
    assert main(["keys", "pe.tile", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["key"] for row in rows] == ["pe.tile.m", "pe.tile.k", "pe.tile.n"]
    assert rows[0] == {
        "key": "pe.tile.m",
        "kind": "integer",
        "unit": None,
        "value": 32,
        "allowed": "1 to 4,096",
        "acts_on": "rows of a GEMM step",
        "since": 1,
    }
    assert main(["keys", "version", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["default"] == 1


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["pe.dma.chanels"], "no key of topology.yaml has 'pe.dma.chanels' in its path; did you"),
        (["dma.chanels"], "did you mean 'pe.dma.channels'?"),
        (["xyzzy"], "; known: "),
        ([""], "no key of topology.yaml has '' in its path"),
        (["pe.dma", "pe.tcm"], "pe.tcm"),
        (["--jsn"], "did you mean '--json'?"),
    ],
)
def test_a_name_that_no_key_has_is_one_line(
    arguments: list[str], problem: str, capsys: pytest.CaptureFixture[str]
):
    assert main(["keys", *arguments]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    (line,) = printed.err.splitlines()
    assert problem in line
