import sys
from importlib import import_module
from pathlib import Path

import pytest

from sip_node.busy_report import imports_module

MODULE = """
from sip_node.busy_report import imports_module
found = imports_module()
"""


def test_a_module_is_imported_while_it_is_executed_and_not_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "reads_its_import.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    module = import_module("reads_its_import")
    del sys.modules["reads_its_import"]
    assert module.found is True
    assert not imports_module()


def test_objects_of_any_kind_may_be_modules(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "no_module", 3)  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "absent", None)
    assert not imports_module()


def test_no_frame_of_a_program_is_touched(monkeypatch: pytest.MonkeyPatch):
    """A frame that another thread holds keeps the tensors of its function, for some wall time."""

    def frames() -> dict[int, object]:
        raise AssertionError("the stack of a program is read")

    monkeypatch.setattr(sys, "_current_frames", frames)
    assert not imports_module()
