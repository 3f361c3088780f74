import tempfile
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _private_temp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Every run that a test starts makes its private directory here, and none may be left."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    yield
    assert not list(tmp_path.glob("kernbench-*"))
