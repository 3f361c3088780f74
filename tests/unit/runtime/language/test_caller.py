"""Source locations, which do not depend on the working directory."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from runtime.language.caller import kernel_line

SOURCE = "def line():\n    return kernel_line()\n"


def line_of(file: str) -> str:
    """The location of a call in `file`."""
    names: dict[str, Callable[..., str]] = {"kernel_line": kernel_line}
    exec(compile(SOURCE, file, "exec"), names)
    return names["line"]()


def test_a_path_is_relative_to_the_longest_folder_of_the_import_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    for folder in (tmp_path / "project", tmp_path):
        monkeypatch.syspath_prepend(str(folder))
    assert line_of(str(tmp_path / "project" / "package" / "train.py")) == "package/train.py:2"
    assert line_of(str(tmp_path / "other.py")) == "other.py:2"


def test_the_working_directory_changes_no_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [each for each in sys.path if each])
    file = str(tmp_path / "elsewhere" / "train.py")
    assert line_of(file) == f"{file}:2"
    assert line_of(__file__) == "tests/unit/runtime/language/test_caller.py:2"


def test_code_without_a_file_keeps_its_name():
    assert line_of("<string>") == "<string>:2"
