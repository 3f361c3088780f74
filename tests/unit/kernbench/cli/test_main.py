from pathlib import Path

import pytest

from kernbench.cli.main import main
from kernbench.cli.options import DEFAULT_BENCH


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--sips", "0"], "--sips: expected an integer of at least 1, got '0'"),
        (["--sips", "257"], "system.sips.count"),
        (["--procs", "0"], "--procs: expected an integer of at least 1, got '0'"),
        (["--sips", "2", "--procs", "3"], "procs is 3: 2 SIPs can be dealt to 1 to 2 processes"),
        (["--bench", "ccl-allreduc"], "did you mean 'ccl-allreduce'?"),
        (["--topologie", "x"], "did you mean '--topology'?"),
        (["lsit"], "did you mean 'list'?"),
        (["--topology", "missing.yaml"], "missing.yaml: no such file"),
        (["--ccl", "missing.yaml"], "missing.yaml: no such file"),
        (["--topology", "bad.yaml"], "bad.yaml: line 2"),
        (["--out", "bad.yaml"], "--out: cannot write to bad.yaml"),
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


def test_the_help_is_printed_and_nothing_runs(capsys: pytest.CaptureFixture[str]):
    assert main(["--sips", "2", "--help"]) == 0
    assert "Usage: kernbench" in capsys.readouterr().out
