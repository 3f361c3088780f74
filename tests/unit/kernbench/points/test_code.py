"""A worker with other code is recognised."""

from dataclasses import replace
from pathlib import Path

import pytest

from kernbench.points import code
from kernbench.points.code import code_of_this_process, difference
from runtime.core.code.imported_code import CodeFile


def test_this_process_has_its_own_code():
    expected = code_of_this_process()
    assert len(expected.own) == 64
    assert difference(expected) == ""


def test_other_code_of_kernbench_is_named_by_both_hashes():
    expected = replace(code_of_this_process(), own="f" * 64)
    assert f"{code.own_code()[:12]}, and the one here ffffffffffff" in difference(expected)


def test_a_module_of_the_user_with_other_content_is_named():
    name, file = next(iter(code_of_this_process().user.items()))
    expected = replace(code_of_this_process(), user={name: CodeFile(file.file, "0" * 64)})
    assert repr(name) in difference(expected)


def test_a_changed_source_changes_the_hash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for package in code.PACKAGES:
        (tmp_path / package).mkdir()
    source = tmp_path / "runtime" / "a.py"
    monkeypatch.setattr(code, "ROOT", tmp_path)
    hashes = set()
    for change in ("x = 1\n", "x = 2\n"):
        source.write_text(change)
        hashes.add(code.own_code.__wrapped__())
    source.rename(tmp_path / "runtime" / "b.py")
    hashes.add(code.own_code.__wrapped__())
    (tmp_path / "runtime" / "notes.txt").write_text("no code")
    hashes.add(code.own_code.__wrapped__())
    assert len(hashes) == 3
