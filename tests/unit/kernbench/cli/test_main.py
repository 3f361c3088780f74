from pathlib import Path

import pytest

from kernbench.cli.main import main
from kernbench.command.options import DEFAULT_BENCH
from runtime.core.compiled.choice import CORE


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--sips", "0"], "--sips: expected an integer of at least 1, got '0'"),
        (["--sips", "1025"], "system.sips.count"),
        (["--procs", "0"], "--procs: expected an integer of at least 1 or 'auto', got '0'"),
        (["--sips", "2", "--procs", "3"], "--procs 3 for 2 SIPs: at most one process for each SIP"),
        (["--sips", "1", "--procs", "2"], "--procs 2 for 1 SIP: at most one process for each SIP"),
        (["--bench", "ccl-allreduc"], "did you mean 'ccl-allreduce'?"),
        (["--topologie", "x"], "did you mean '--topology'?"),
        (["lsit"], "did you mean 'list'?"),
        (["--topology", "missing.yaml"], "missing.yaml: no such file"),
        (["--ccl", "missing.yaml"], "missing.yaml: no such file"),
        (["--topology", "bad.yaml"], "bad.yaml: line 2"),
        (["--out", "bad.yaml"], "--out: cannot write to bad.yaml"),
        (["--algorithm", "point_to_point"], "it is the algorithm of send and receive"),
        (["--algorithm", "rign"], "no algorithm 'rign'; did you mean 'ring'?"),
        (["--algorithm", "point_to_pont"], "no algorithm 'point_to_pont'; known: auto, halving"),
        (["perf", "all_reduce", "--algorithm", "point_to_point"], "the algorithm of send and rec"),
        (
            ["--min-bytes", "3"],
            "--min-bytes 3: an element of float32 has 4 bytes, and a size is a mul",
        ),
        (["--factor", "1"], "by --factor 1: needs 0 < min <= max and a factor of at least 2"),
        (["--warmup", "-1"], "--warmup -1: cannot be negative"),
        (["--dtype", "f99"], "unknown dtype 'f99'"),
        (["validate", "--csv", "/"], "validate: --csv: cannot write /: Is a directory"),
        (["validate", "--csv", "no/such.csv"], "validate: --csv: cannot write no/such.csv: No"),
        (["probe", "--json", "/"], "probe: --json: cannot write /: Is a directory"),
        (["perf", "all_reduce", "-e", "1G", "-i", "8"], "-i 8 makes 134,209,537 sizes, more than"),
    ],
)
def test_a_wrong_command_line_is_one_line_on_stderr_and_exit_code_2(
    arguments: list[str],
    problem: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    monkeypatch.chdir(tmp_path)
    Path("bad.yaml").write_text("system: {sips: [\n")
    assert main(arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    (line,) = printed.err.splitlines()
    assert line.startswith("kernbench: error: ")
    assert problem in line
    assert not Path("runs").exists()


def test_the_list_numbers_the_benches(capsys: pytest.CaptureFixture[str]):
    assert main(["--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [int(line.split()[0]) for line in lines] == list(range(1, len(lines) + 1))
    assert DEFAULT_BENCH in [line.split()[1] for line in lines]


def test_the_version_names_the_core_that_runs(capsys: pytest.CaptureFixture[str]):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.rstrip().endswith(f"core {CORE}")


def test_the_help_is_printed_and_nothing_runs(capsys: pytest.CaptureFixture[str]):
    assert main(["--sips", "2", "--help"]) == 0
    assert "Usage: kernbench" in capsys.readouterr().out


@pytest.mark.parametrize("value", [1 << 63, 1 << 64, 10**30, -(10**30), 10**400])
@pytest.mark.parametrize(
    "options",
    [
        ["--jitter-seed"],
        ["--min-bytes"],
        ["--max-bytes"],
        ["--factor"],
        ["--warmup"],
        ["perf", "all_reduce", "--iters"],
    ],
)
def test_an_integer_that_does_not_fit_the_wire_is_refused_before_the_run(
    options: list[str], value: int, capsys: pytest.CaptureFixture[str]
):
    assert main([*options, str(value)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    (line,) = printed.err.splitlines()
    assert f"{options[-1]}: expected an integer" in line.replace("-n:", "--iters:")
    assert "which fits 64 bits, got" in line


def test_ctrl_c_after_the_simulation_ends_the_command_as_the_signal_does(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def interrupted(*_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("kernbench.cli.main._execute", interrupted)
    assert main(["--sips", "1"]) == 130
    assert capsys.readouterr().err.strip() == ""
