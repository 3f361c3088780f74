"""Processes that the script of a rank starts with `torch.multiprocessing`.

A script that starts a process for each rank by `spawn` runs unchanged: the ranks of the run are
these processes, and each calls the function with its number. A process that a rank starts by other
means, such as a worker of a `DataLoader`, is no rank. It has no device and no process group, which
would wait for other ranks in wall time: each use of them is an error with the line to write.
"""

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn, cast

import torch.multiprocessing
from torch.distributed import distributed_c10d
from torch.multiprocessing.spawn import ProcessContext
from torch.utils.backend_registration import rename_privateuse1_backend

from kernbench.torch_backend.runtime.host_mode import connect_host
from kernbench.torch_backend.runtime.no_device import NoDevice
from kernbench.torch_backend.runtime.pytorch_api import DEVICE, replace
from runtime.device.rank.rank_state import RankState, current_rank, running_rank

_SPAWN, _START = "spawn", "start_processes"
_REMEDY = (
    "`kernbench run --sips N script.py` starts a process for each rank: call "
    "main(int(os.environ['RANK'])) in the script, or torch.multiprocessing.spawn(main, nprocs=N)"
)


def run_in_ranks() -> None:
    """Let `torch.multiprocessing.spawn` call its function in the ranks of the run, and refuse the
    device in processes that a rank forks.
    """
    # The module and its function have one name.
    module = sys.modules["torch.multiprocessing.spawn"]
    for owner in (module, torch.multiprocessing):
        for name in (_SPAWN, _START):
            setattr(owner, name, _spawned)
    os.register_at_fork(after_in_child=_forked)


def _spawned(
    fn: Callable[..., object],
    args: Sequence[Any] = (),
    nprocs: int = 1,
    join: bool = True,  # noqa: FBT001, FBT002 - as in PyTorch
    daemon: bool = False,  # noqa: FBT001, FBT002
    start_method: str = "spawn",
) -> ProcessContext | None:
    """`ValueError` if there are not as many ranks as processes."""
    del daemon, start_method
    state = running_rank()
    if nprocs != state.world_size:
        raise ValueError(
            f"torch.multiprocessing.spawn of {nprocs} processes in a run of {state.world_size} "
            f"ranks, which are these processes: start it with `kernbench run --sips {nprocs} "
            f"{Path(sys.argv[0]).name}`"
        )
    fn(state.rank, *args)
    # A context without processes is complete.
    return None if join else ProcessContext([], [])


class _NoRank:
    """Stands for the state of a rank in a process that the rank has forked. False, for functions
    that have a form without a rank.
    """

    def __init__(self, error: Callable[[], RuntimeError]) -> None:
        self._error = error

    def __bool__(self) -> bool:
        return False

    def __getattr__(self, name: str) -> NoReturn:
        raise self._error()


def _forked() -> None:
    state = current_rank.get(None)
    if state:
        reason = _reason(state.rank)
        current_rank.set(cast(RankState, _NoRank(lambda: RuntimeError(f"{reason}. {_REMEDY}"))))
        _refuse_groups(reason)


def refuse_device() -> None:
    """Refuse the device in a process with an interpreter of its own."""
    reason = _reason(os.environ.get("RANK", "?"))
    NoDevice.in_process(f"because {reason}", _REMEDY)
    rename_privateuse1_backend(DEVICE)
    _Kept.libraries = connect_host()
    _refuse_groups(reason)


class _Kept:
    """The registrations of operators, which end when the objects die."""

    libraries: tuple[torch.library.Library, ...] = ()


def _reason(rank: object) -> str:
    return f"process {os.getpid()}, which rank {rank} has started, is no rank of the run"


def _refuse_groups(reason: str) -> None:
    def refuse(*_: object, **__: object) -> NoReturn:
        raise RuntimeError(f"init_process_group: {reason}. {_REMEDY}")

    for owner in (distributed_c10d, torch.distributed):
        replace(owner, "init_process_group", lambda _: refuse)
