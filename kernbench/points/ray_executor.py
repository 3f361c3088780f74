"""Tasks on a Ray cluster of the user, which goes on afterwards: `--on ray:ADDRESS`."""

import os
import socket
import subprocess
import sys
import warnings
from collections.abc import Callable, Generator
from concurrent.futures import BrokenExecutor, Executor, Future
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any

from kernbench.points.cluster_future import LostWorkerError, cluster_future
from runtime.core.errors import UsageError

_ANSWER_S = 10
"""Seconds in which a cluster has to answer."""
_CLIENT = "ray://"
_DEFAULTS = {
    "RAY_USAGE_STATS_ENABLED": "0",  # nothing is sent to the makers of Ray
    "RAY_CLIENT_INITIAL_CONNECTION_TIMEOUT_S": "2",  # of three attempts, each twice as long
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # without it Ray warns of its next version
}


class RayExecutor(Executor):
    """Submits tasks to the cluster that this process is connected with."""

    def __init__(self, ray: Any) -> None:
        self._ray = ray
        # The driver of the points counts the deaths: Ray would try each task four times itself.
        self._call = ray.remote(_call).options(max_retries=0)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        """The result of `fn`, as `Executor.submit` promises."""
        task = self._call.remote(fn, *args, **kwargs)
        future = cluster_future(task.future(), self._translated)
        future.add_done_callback(lambda future: future.cancelled() and self._cancel(task))
        return future

    def _cancel(self, task: Any) -> None:
        # A task that runs ends too: its worker is killed.
        with suppress(Exception):
            self._ray.cancel(task, force=True)

    def _translated(self, error: BaseException) -> BaseException:
        errors = self._ray.exceptions
        if isinstance(error, errors.RayTaskError):
            of_ray: Any = error
            return of_ray.cause
        if isinstance(error, (errors.RaySystemError, ConnectionError)):
            return BrokenExecutor(_first_line(error))
        if isinstance(error, errors.RayError):
            return LostWorkerError(_first_line(error))
        return error


def _call(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    # Ray makes tasks of functions in Python only, and not of other callable objects.
    return fn(*args, **kwargs)


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__


@contextmanager
def open_ray(on: str, address: str) -> Generator[Executor]:
    """An executor on the cluster at `address`: `auto`, `HOST:PORT` or `ray://HOST:PORT`."""
    # Ray reads them when it is imported.
    for name, value in _DEFAULTS.items():
        os.environ.setdefault(name, value)
    try:
        ray: Any = import_module("ray")
    except ModuleNotFoundError as error:
        raise UsageError(
            f"--on {on}: it needs Ray, the extra `ray`: pip install 'kernbench[ray]'"
        ) from error
    _require_answer(on, address)
    try:
        with warnings.catch_warnings():
            # What they concern is in the exception.
            warnings.simplefilter("ignore")
            ray.init(address=address, log_to_driver=False, logging_level="ERROR")
    except Exception as error:
        raise UsageError(f"--on {on}: no connection to Ray: {_first_line(error)}") from error
    # Its threads print until they have ended.
    with _without_messages():
        try:
            yield RayExecutor(ray)
        finally:
            ray.shutdown()


def _require_answer(on: str, address: str) -> None:
    """`ray.init` itself would wait for minutes."""
    if address != "auto":
        host, _, port = address.removeprefix(_CLIENT).rpartition(":")
        if not host or not port.isdecimal():
            raise UsageError(f"--on {on}: expected ray:auto, ray:HOST:PORT or ray:ray://HOST:PORT")
        try:
            socket.create_connection((host, int(port)), _ANSWER_S).close()
        except OSError as error:
            raise UsageError(f"--on {on}: no answer from {host}:{port}: {error}") from error
    if not address.startswith(_CLIENT) and not _has_status(address):
        raise UsageError(
            f"--on {on}: no Ray cluster answers within {_ANSWER_S} s; `ray start --head` starts one"
        )


def _has_status(address: str) -> bool:
    options = () if address == "auto" else ("--address", address)
    command = (sys.executable, "-c", "from ray.scripts.scripts import main; main()", "status")
    try:
        answer = subprocess.run(  # noqa: S603 - our own command
            (*command, *options), capture_output=True, timeout=_ANSWER_S, check=False
        )
    except subprocess.TimeoutExpired:
        return False
    return answer.returncode == 0


@contextmanager
def _without_messages() -> Generator[None]:
    """Ray prints lines of the cluster, also of deaths, on the standard output of its driver.

    It has no option against them, only this variable, which its debugger uses.
    """
    worker: Any = import_module("ray._private.worker")
    shown = getattr(worker, "_worker_logs_enabled", True)
    worker._worker_logs_enabled = False  # noqa: SLF001
    try:
        yield
    finally:
        worker._worker_logs_enabled = shown  # noqa: SLF001
