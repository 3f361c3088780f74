"""The program of a run, before it is imported."""

import sys
from pathlib import Path

import pytest

from runtime.core.imported_code import SCRIPT
from runtime.wire.control import Job
from sip_node.programs.user_program import Programs


def job(kind: str, program: str) -> Job:
    return Job(
        topology_yaml="",
        ccl_yaml="",
        sips=1,
        program=program,
        kind=kind,
        arguments={},
        argv=(),
        data=True,
        trace=True,
        jitter_seed=0,
        jitter_ms=0.0,
    )


@pytest.mark.parametrize(
    ("kind", "program", "file"),
    [
        ("script", "/home/train.py", (Path("/home/train.py"), SCRIPT)),
        ("bench", "/home/mine.py:sweep", (Path("/home/mine.py"), "mine")),
        ("bench", "package.module:sweep", None),
        ("function", "", None),
    ],
)
def test_the_file_of_a_program_is_known_before_it_is_imported(
    kind: str, program: str, file: tuple[Path, str] | None
):
    assert Programs(job(kind, program)).file == file


def test_a_script_is_announced_before_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    script = tmp_path / "train.py"
    script.write_text("import pathlib\npathlib.Path(__file__).write_text('edited')\n")
    monkeypatch.setattr(sys, "argv", [])
    monkeypatch.setattr(sys, "path", sys.path.copy())
    contents: list[str] = []
    programs = Programs(
        job("script", str(script)), script_starts=lambda file: contents.append(file.read_text())
    )
    programs.of(0)()
    assert script.read_text() == "edited"
    assert contents == ["import pathlib\npathlib.Path(__file__).write_text('edited')\n"]
