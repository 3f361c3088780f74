"""Executors by name: this machine, a cluster of Dask or Ray, or a factory of the user's.

kernbench schedules nothing itself. It submits tasks to a `concurrent.futures.Executor`, and expects
a future for each one. What this module opens, it closes; a cluster stays.
"""

from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from inspect import signature
from typing import Any

from kernbench.points.task import LOCAL
from runtime.core.code.bench_source import import_source, split_source
from runtime.core.errors import UsageError, nearest

_ADDRESSES = {
    "dask": "dask:HOST:PORT, or dask:FILE.json for a scheduler file",
    "ray": "ray:auto, ray:HOST:PORT or ray:ray://HOST:PORT",
}
_FORMS = "expected local, dask:ADDRESS, ray:ADDRESS or module:factory"


@contextmanager
def open_executor(on: str, procs: int) -> Generator[Executor]:
    """The executor named `on`, for `procs` tasks at once if that is the choice of this process.

    Raises `UsageError`, in one line, if there is no such executor or its cluster does not answer.
    """
    kind, _, rest = on.partition(":")
    if on == LOCAL:
        # Its threads measure in processes.
        with ThreadPoolExecutor(procs, "points") as executor:
            yield executor
        return
    if kind in _ADDRESSES and not rest:
        raise UsageError(f"--on {on}: its address is missing: {_ADDRESSES[kind]}")
    if kind == LOCAL:
        raise UsageError(f"--on {on}: local has no address; --procs is the number of processes")
    if not kind or not rest:
        raise UsageError(f"--on {on}: {_FORMS}{_similar(kind, (LOCAL, *_ADDRESSES))}")
    with _opened(on, kind, rest) as executor:
        yield executor


@contextmanager
def _opened(on: str, kind: str, rest: str) -> Generator[Executor]:
    # Imported here, with the libraries of their clusters.
    if kind == "dask":
        from kernbench.points.dask_executor import open_dask

        with open_dask(on, rest) as executor:
            yield executor
    elif kind == "ray":
        from kernbench.points.ray_executor import open_ray

        with open_ray(on, rest) as executor:
            yield executor
    else:
        with _of_factory(on, *split_source(on)) as executor:
            yield executor


@contextmanager
def _of_factory(on: str, source: str, name: str) -> Generator[Executor]:
    executor = _made(on, _factory(on, source, name))
    options = {"cancel_futures": True}
    try:
        yield executor
    except BaseException:
        # loky has this instead of a wait for tasks that run.
        options["kill_workers"] = True
        raise
    finally:
        accepted = signature(executor.shutdown).parameters
        executor.shutdown(**{key: value for key, value in options.items() if key in accepted})


def _factory(on: str, source: str, name: str) -> Callable[[], Any]:
    try:
        module = import_source(source)
    except UsageError as error:
        raise UsageError(f"--on {on}: {error}") from error
    except ModuleNotFoundError as error:
        if error.name is None or not f"{source}.".startswith(f"{error.name}."):
            raise UsageError(f"--on {on}: {source} cannot be imported: {error}") from error
        hint = _similar(source, _ADDRESSES) or f"; {_FORMS}"
        raise UsageError(f"--on {on}: there is no module {error.name!r}{hint}") from error
    except Exception as error:
        raise UsageError(f"--on {on}: {source} cannot be imported: {_text(error)}") from error
    factory = getattr(module, name, None)
    if not callable(factory):
        known = (each for each, value in vars(module).items() if callable(value))
        raise UsageError(
            f"--on {on}: {source} has no function {name!r}"
            f"{nearest(name, (each for each in known if not each.startswith('_')))}"
        )
    return factory


def _similar(name: str, known: Iterable[str]) -> str:
    text = nearest(name, known)
    return text if "did you mean" in text else ""


def _made(on: str, factory: Callable[[], Any]) -> Executor:
    try:
        executor = factory()
    except Exception as error:
        raise UsageError(f"--on {on}: the factory has failed: {_text(error)}") from error
    if not isinstance(executor, Executor):
        raise UsageError(
            f"--on {on}: the factory has made an object of type {type(executor).__name__}, no "
            "concurrent.futures.Executor"
        )
    return executor


def _text(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
