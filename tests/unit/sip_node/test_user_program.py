"""The program of a run, before it is imported."""

import sys
from contextvars import copy_context
from pathlib import Path

import msgspec
import pytest

from runtime.core.code.imported_code import SCRIPT
from runtime.wire.control import Job
from runtime.wire.environment import RankPlace
from sip_node.user_program import ProgramExited, Programs


def job(kind: str, program: str) -> Job:
    return Job(
        topology=b"",
        ccl=b"",
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
    ("kind", "program", "file", "module", "folders"),
    [
        ("script", "/home/train.py", (Path("/home/train.py"), SCRIPT), None, ("/home",)),
        ("module", "package.train", None, "package.train", (str(Path.cwd()),)),
        ("bench", "/home/mine.py:sweep", (Path("/home/mine.py"), "mine"), None, ("/home",)),
        ("bench", "package.module:sweep", None, "package.module", ()),
        ("function", "", None, None, ()),
    ],
)
def test_the_source_of_a_program_is_known_before_it_is_imported(
    kind: str,
    program: str,
    file: tuple[Path, str] | None,
    module: str | None,
    folders: tuple[str, ...],
):
    programs = Programs(job(kind, program))
    assert (programs.file, programs.module, programs.folders) == (file, module, folders)


def test_a_module_runs_as_main_with_the_working_directory_on_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "recipes").mkdir()
    (tmp_path / "recipes" / "beside.py").write_text("value = 7\n")
    (tmp_path / "recipes" / "train.py").write_text(
        "import sys\n"
        "from .beside import value\n"
        "if __name__ == '__main__' and sys.argv[1:] == ['-x']:\n"
        "    sys.exit(value)\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [])
    monkeypatch.setattr(sys, "path", sys.path.copy())
    given = msgspec.structs.replace(job("module", "recipes.train"), argv=("-x",))
    with pytest.raises(ProgramExited, match="exit code 7"):
        copy_context().run(Programs(given).of(RankPlace.on_one_host(0, 1)))


def test_a_script_is_announced_before_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    script = tmp_path / "train.py"
    script.write_text("import pathlib\npathlib.Path(__file__).write_text('edited')\n")
    monkeypatch.setattr(sys, "argv", [])
    monkeypatch.setattr(sys, "path", sys.path.copy())
    contents: list[str] = []
    programs = Programs(
        job("script", str(script)), script_starts=lambda file: contents.append(file.read_text())
    )
    copy_context().run(programs.of(RankPlace.on_one_host(0, 1)))
    assert script.read_text() == "edited"
    assert contents == ["import pathlib\npathlib.Path(__file__).write_text('edited')\n"]
