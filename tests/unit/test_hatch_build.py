"""What the build hook needs, and that builds of one tree take turns."""

import fcntl
import subprocess
import sys
import tomllib
from pathlib import Path
from zipfile import ZipFile

import pytest

import hatch_build
from hatch_build import CompiledCore

ROOT = Path(__file__).parents[2]


def hook() -> CompiledCore:
    return CompiledCore.__new__(CompiledCore)


def test_a_build_with_the_core_needs_the_extra_core(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("KERNBENCH_CORE", raising=False)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert hook().dependencies() == project["optional-dependencies"]["core"]


def test_a_build_without_the_core_needs_nothing_else(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("KERNBENCH_CORE", "python")
    assert hook().dependencies() == []


def test_the_hook_is_loaded_without_cython_and_setuptools():
    """An isolated build that needs no core has neither."""
    program = (
        "import sys; sys.modules['Cython'] = sys.modules['setuptools'] = None; import hatch_build"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False)
    assert done.returncode == 0


def test_a_build_reports_that_it_waits_for_another(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    real = fcntl.flock
    with (tmp_path / "lock").open("w") as other:
        real(other, fcntl.LOCK_EX)

        def flock(file: object, operation: int) -> None:
            if operation == fcntl.LOCK_EX:
                # The other build ends while this one waits.
                real(other, fcntl.LOCK_UN)
            real(file, operation)

        monkeypatch.setattr(fcntl, "flock", flock)
        with hatch_build._no_other_build(tmp_path), pytest.raises(BlockingIOError):
            real(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    assert capsys.readouterr().err == ("another process builds the compiled core; waiting for it\n")


def test_builds_share_the_cache_of_the_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert hatch_build.cache_folder() == tmp_path / "cache" / "kernbench" / "core"
    assert hatch_build.cache_folder().stat().st_mode & 0o077 == 0
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert hatch_build.cache_folder() == tmp_path / "home" / ".cache" / "kernbench" / "core"


def test_a_build_without_a_writable_home_keeps_what_it_makes_in_the_tree(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    (tmp_path / "file").touch()
    for variable in ("XDG_CACHE_HOME", "HOME"):
        monkeypatch.setenv(variable, str(tmp_path / "file"))
    monkeypatch.setattr(hatch_build, "ROOT", tmp_path / "tree")
    assert hatch_build.cache_folder() == tmp_path / "tree" / "build" / "core"


def test_a_translation_that_failed_is_made_again(tmp_path: Path):
    # Otherwise the next build finds no C file, and reports that in place of the reason.
    ZipFile(tmp_path / "failed.zip", "w").close()
    with ZipFile(tmp_path / "made.zip", "w") as made:
        made.writestr("made.c", "")
    hatch_build._forget_failures(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["made.zip"]
