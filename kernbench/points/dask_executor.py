"""Tasks on a Dask cluster of the user, which goes on afterwards: `--on dask:ADDRESS`."""

import asyncio
import json
import logging
from collections.abc import Callable, Generator
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from kernbench.points.cluster_future import LostWorkerError, cluster_future
from runtime.core.errors import UsageError

_ANSWER_S = 10
"""Seconds in which a scheduler has to answer, at the start and after a lost connection."""
_LOGGERS = ("distributed", "tornado")


class DaskExecutor(Executor):
    """Submits tasks with a client. A worker that dies is replaced by the scheduler itself."""

    def __init__(self, client: Any, address: str) -> None:
        # A function with the same argument is called again (`pure`), and an exception is of the
        # function: it would come again (`retries`).
        self._executor: Executor = client.get_executor(pure=False, retries=0)
        self._address = address

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        """The result of `fn`, as `Executor.submit` promises."""
        theirs = self._executor.submit(fn, *args, **kwargs)
        return cluster_future(theirs, partial(_translated, self._address))

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002
        """Refuse further tasks; without `wait` those that have not started are cancelled."""
        self._executor.shutdown(wait=wait and not cancel_futures)


def _translated(address: str, error: BaseException) -> BaseException:
    if isinstance(error, CancelledError):
        return BrokenExecutor(f"the scheduler at {address} has cancelled the task, or is gone")
    killed: Any = error
    if isinstance(error, import_module("distributed").KilledWorker):
        deaths = int(killed.allowed_failures) + 1
        last = killed.last_worker.address
        return LostWorkerError(f"{deaths} workers of Dask, the last one at {last}", deaths)
    return error


@contextmanager
def open_dask(on: str, address: str) -> Generator[Executor]:
    """An executor on the scheduler at `address`, which may be the path of a scheduler file."""
    try:
        distributed: Any = import_module("distributed")
    except ModuleNotFoundError as error:
        raise UsageError(
            f"--on {on}: it needs Dask, the extra `dask`: pip install 'kernbench[dask]'"
        ) from error
    with _without_log_lines():
        client = _client(distributed, on, address)
        executor = DaskExecutor(client, address)
        try:
            yield executor
        finally:
            # Its futures have results, or are not needed any more.
            executor.shutdown(wait=False)
            client.close()


def _client(distributed: Any, on: str, address: str) -> Any:
    try:
        scheduler = _of_scheduler_file(address) if address.endswith(".json") else address
        # Only for an error: a client without a scheduler would leave its thread behind.
        asyncio.run(_require_scheduler(scheduler))
        return distributed.Client(scheduler, timeout=_ANSWER_S, set_as_default=False)
    except OSError as error:
        text = _first_line(error) or f"another server has the address {address}"
        raise UsageError(f"--on {on}: no scheduler of Dask answers: {text}") from error
    except (ValueError, TypeError, RuntimeError) as error:
        raise UsageError(f"--on {on}: {_first_line(error)}") from error


def _of_scheduler_file(path: str) -> str:
    try:
        return str(json.loads(Path(path).read_text())["address"])
    except OSError as error:
        raise ValueError(f"cannot read the scheduler file: {error.strerror}") from error
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError("it is no scheduler file, which `dask scheduler` writes") from error


async def _require_scheduler(address: str) -> None:
    security: Any = import_module("distributed.security").Security()
    connect: Any = import_module("distributed.comm").connect
    arguments = security.get_connection_args("client")
    # The time limit of `connect` is that of the connection: another server may never answer.
    async with asyncio.timeout(_ANSWER_S + 1):
        connection = await connect(address, timeout=_ANSWER_S, **arguments)
    connection.abort()


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]


@contextmanager
def _without_log_lines() -> Generator[None]:
    """Dask reports losses in lines of several loggers, with tracebacks; futures have them too."""
    loggers = [
        logger
        for name, logger in logging.root.manager.loggerDict.items()
        if name.partition(".")[0] in _LOGGERS and isinstance(logger, logging.Logger)
    ]
    disabled = [logger.disabled for logger in loggers]
    for logger in loggers:
        logger.disabled = True
    try:
        yield
    finally:
        for logger, before in zip(loggers, disabled, strict=True):
            logger.disabled = before
