import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.warm_lps import warm_lps


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A directory with a short name: the path of a socket in it has at most about 100 bytes."""
    with tempfile.TemporaryDirectory(prefix="kb-") as folder:
        yield Path(folder)


@pytest.fixture(autouse=True)
def _private_temp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Every run of a test creates its private directory here, and removes it."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    yield
    assert not list(tmp_path.glob("kernbench-*"))


@pytest.fixture(autouse=True)
def _compiled_once(monkeypatch: pytest.MonkeyPatch):
    """Processes cache bytecode, as by default: otherwise each compiles every module again."""
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)


@pytest.fixture
def warm() -> Iterator[None]:
    """The LPs of runs that this process starts itself are forks."""
    with warm_lps():
        yield
