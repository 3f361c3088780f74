"""Executors by name; those of clusters run in `tests/clusters`."""

import re
import sys
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path
from threading import enumerate as running_threads

import pytest

from kernbench.points.executors import open_executor
from runtime.core.errors import UsageError

FACTORIES = """
from concurrent.futures import ThreadPoolExecutor

def threads():
    return ThreadPoolExecutor(2, "of the factory")

def failing():
    raise RuntimeError("no nodes\\nare free")

def number():
    return 3
"""


@pytest.fixture
def _factories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "factories.py").write_text(FACTORIES)
    (tmp_path / "broken.py").write_text("import of_nobody\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield
    for name in ("factories", "broken"):
        sys.modules.pop(name, None)


def _problem(on: str) -> str:
    with pytest.raises(UsageError) as raised, open_executor(on, 1):
        pytest.fail("it has been opened")
    assert "\n" not in str(raised.value)
    return str(raised.value)


def test_local_is_a_pool_of_threads_which_end_with_it():
    with open_executor("local", 2) as executor:
        assert isinstance(executor, ThreadPoolExecutor)
        assert executor.submit(pow, 2, 5).result() == 32
    assert [thread.name for thread in running_threads() if "points" in thread.name] == []


@pytest.mark.usefixtures("_factories")
@pytest.mark.parametrize("source", ["factories", "factories.py"])
def test_an_executor_of_a_factory_is_shut_down_at_the_end(source: str):
    with open_executor(f"{source}:threads", 1) as executor:
        assert executor.submit(pow, 2, 5).result() == 32
    assert [thread.name for thread in running_threads() if "factory" in thread.name] == []
    with pytest.raises(RuntimeError, match="after shutdown"):
        executor.submit(pow, 2, 5)


class OldExecutor(Executor):
    """An executor with the signature of Python 3.8: no `cancel_futures`."""

    closed = False

    def submit(self, fn, /, *args, **kwargs):
        future = Future()
        future.set_result(fn(*args, **kwargs))
        return future

    def shutdown(self, wait=True):
        self.closed = True


def test_an_executor_without_the_newer_arguments_is_shut_down(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys.modules[__name__], "made", OldExecutor(), raising=False)
    monkeypatch.setattr(sys.modules[__name__], "old", lambda: made, raising=False)  # noqa: F821
    with open_executor(f"{__name__}:old", 1) as executor:
        assert not executor.closed
    assert executor.closed


@pytest.mark.parametrize(
    ("on", "text"),
    [
        ("locl", "--on locl: expected local, .*; did you mean 'local'?"),
        ("", "--on : expected local, dask:ADDRESS, ray:ADDRESS or module:factory"),
        ("local:4", "--on local:4: local has no address; --procs is the number of processes"),
        ("dask", "--on dask: its address is missing: dask:HOST:PORT, or dask:FILE.json.*"),
        ("ray:", "--on ray:: its address is missing: ray:auto, .*"),
        ("dsk:8786", "--on dsk:8786: there is no module 'dsk'; did you mean 'dask'?"),
        ("of_nobody:f", "--on of_nobody:f: there is no module 'of_nobody'; expected local, .*"),
        ("of_nobody.py:f", "--on of_nobody.py:f: no such file: of_nobody.py"),
        ("broken:f", "--on broken:f: broken cannot be imported: No module named 'of_nobody'"),
        ("factories:thread", ".*factories has no function 'thread'; did you mean 'threads'?"),
        ("factories:FACTORIES", ".*factories has no function 'FACTORIES'.*"),
        ("factories:failing", ".*: the factory has failed: RuntimeError: no nodes"),
        ("factories:number", ".*made an object of type int, no concurrent.futures.Executor"),
    ],
)
@pytest.mark.usefixtures("_factories")
def test_what_is_no_executor_is_refused_in_one_line(on: str, text: str):
    assert re.fullmatch(text.replace("?", r"\?"), _problem(on))


@pytest.mark.parametrize(
    ("module", "on", "extra"), [("distributed", "dask:h:1", "dask"), ("ray", "ray:auto", "ray")]
)
def test_a_missing_library_is_an_extra(
    module: str, on: str, extra: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(sys.modules, module, None)
    assert _problem(on).endswith(f"pip install 'kernbench[{extra}]'")
