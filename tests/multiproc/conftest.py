import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A folder with a short name: sockets lie in it, and the path of a socket has room for about a hundred bytes."""
    with tempfile.TemporaryDirectory(prefix="kb-") as folder:
        yield Path(folder)


@pytest.fixture(autouse=True)
def _private_temp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Every run that a test starts makes its private directory here, and none may be left."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    yield
    assert not list(tmp_path.glob("kernbench-*"))


@pytest.fixture(autouse=True)
def _compiled_once(monkeypatch: pytest.MonkeyPatch):
    """Processes keep the bytecode of what they import, as they do by default: without it each one compiles all of it again."""
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
