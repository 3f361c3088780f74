import sys
from importlib import import_module
from pathlib import Path
from threading import get_ident

import pytest

from sip_node.import_state import imports_module

MODULE = """
from threading import get_ident
from sip_node.import_state import imports_module
found = imports_module(get_ident())
"""


def test_a_thread_imports_while_a_module_is_executed_and_not_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "reads_its_import.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    module = import_module("reads_its_import")
    del sys.modules["reads_its_import"]
    assert module.found is True
    assert not imports_module(get_ident())


def test_a_thread_that_has_ended_imports_nothing():
    assert not imports_module(-1)
