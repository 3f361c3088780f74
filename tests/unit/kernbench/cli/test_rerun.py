"""The command line that repeats a recorded run."""

from pathlib import Path
from typing import Any

import pytest

from kernbench.cli.rerun import arguments, repetition
from kernbench.explain.records import RecordedRun, open_run
from runtime.core.errors import UsageError
from tests.support.run_tables import tables, write_run


def recorded(tmp_path: Path, **report: Any) -> RecordedRun:
    return open_run(write_run(tmp_path / "run", [tables(), tables()], 5, **report))


def test_a_bench_has_its_flags(tmp_path: Path):
    flags = {"min_bytes": 4, "algorithm": "ring", "check": False, "fast": True, "factor": -1}
    records = recorded(tmp_path, program="module:bench", arguments=flags, data=False)
    assert list(arguments(records)) == [
        "--sips",
        "2",
        "--no-trace",
        "--no-data",
        "--bench",
        "module:bench",
        "--min-bytes=4",
        "--algorithm=ring",
        "--no-check",
        "--fast",
        "--factor=-1",
    ]


@pytest.mark.parametrize(("kind", "expected"), [("script", ["p.py"]), ("module", ["-m", "p.py"])])
def test_a_script_or_module_has_its_arguments(tmp_path: Path, kind: str, expected: list[str]):
    records = recorded(tmp_path, kind=kind, program="p.py", argv=["--lr", "1"], as_cuda=True)
    tail = ["--as-cuda", *expected, "--lr", "1"]
    assert list(arguments(records)) == ["--sips", "2", "--no-trace", *tail]


def test_a_run_that_a_program_has_started_cannot_be_repeated(tmp_path: Path):
    records = recorded(tmp_path, kind="function", bench="worker")
    with pytest.raises(UsageError, match="worker has started this run by itself"):
        list(arguments(records))


@pytest.mark.parametrize(
    "report",
    [
        {"program": "module:bench", "arguments": {"ccl": "/tmp/planted.yaml"}},
        {"program": "module:bench", "arguments": {"bench": "other:bench"}},
        {"program": "module:bench", "arguments": {"size=1 --out": "/tmp/x"}},
        {"program": "--out=/tmp/x", "kind": "script"},
        {"program": "-m", "kind": "script", "argv": ["planted"]},
    ],
)
def test_a_report_cannot_name_an_option_of_the_command(tmp_path: Path, report: dict[str, Any]):
    with pytest.raises(UsageError, match=r"is no flag of a bench|is an option"):
        list(arguments(recorded(tmp_path, **report)))


def test_the_program_and_its_files_are_shown_without_characters_that_control_a_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    records = recorded(tmp_path, kind="script", program="/p.py", argv=["\x1b[2J", "two words"])
    with pytest.raises(UsageError, match=r"would execute .*two words'; --run-program does so"):
        repetition(records, run_program=False)
    assert not capsys.readouterr().err
    repetition(records, run_program=True)
    shown, files, warning = capsys.readouterr().err.splitlines()
    assert shown.endswith("--no-trace /p.py '\\x1b[2J' 'two words'")
    assert files == "kernbench: note: files of the user in it: none"
    assert "no record of the code of /p.py; it is executed because of --run-program" in warning


@pytest.mark.slow
def test_a_run_that_fails_on_the_changed_machine_is_an_error(tmp_path: Path):
    records = recorded(tmp_path, program="absent_module:bench")
    program = repetition(records, run_program=True)
    with pytest.raises(UsageError, match=r"the run with a=1 failed: .*absent_module"):
        program.simulated_ps(records.topology_text, "a=1")
