"""The environment variables of kernbench: set by the user, or by a coordinator for its LPs."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from runtime.core.errors import UsageError

COORDINATOR_PID = "KERNBENCH_COORDINATOR_PID"
"""The process that started this LP. An LP without it joined by hand."""
RUN_DIRECTORY = "KERNBENCH_RUN_DIRECTORY"
"""The private directory of the run, for socket files. The last process to end removes it."""

AS_CUDA = "KERNBENCH_AS_CUDA"
"""Set by an LP for its rank: 1 where a script of PyTorch has "cuda" for the device, --as-cuda."""

TORCHRUN_RUN = "KERNBENCH_RUN"
"""Set by the user: the run which the workers of torchrun join, as the command `run --topology …`
without a script.
"""

MASTER = "KERNBENCH_MASTER"
"""Set by the user: HOST:PORT of the process of rank 0 of `kernbench node`."""
SECRET = "KERNBENCH_SECRET"  # noqa: S105 - the name of a variable
"""Set by the user: the secret of all processes of `kernbench node`."""
SECRET_FILE = "KERNBENCH_SECRET_FILE"  # noqa: S105 - as above
"""Set by the user: a file with that secret, and with mode 0600."""

CCL_TRACE = "KERNBENCH_CCL_TRACE"
"""Set by the user: 1 requests a line for every slot that a kernel sends or receives."""

CHECK_RACES = "KERNBENCH_CHECK_RACES"
"""Set by the user, or by `pytest --kernbench-check`: 1 checks each run of a bench or a script, as
--check-races does; strict, with the order of streams that CUDA has.
"""

FAST_FORWARD = "KERNBENCH_FAST_FORWARD"
"""Set by the user: 0 simulates every step of a matrix product."""

FOLD = "KERNBENCH_FOLD"
"""Set by the user: 0 simulates all that is equal each time, products included."""

TRACEBACK = "KERNBENCH_TRACEBACK"
"""Set by the user: full shows the frames of kernbench in tracebacks."""


def full_traceback_requested() -> bool:
    """Whether the user requests the frames of kernbench in tracebacks.

    Raises `UsageError` for a value which is neither full nor empty.
    """
    value = os.environ.get(TRACEBACK, "")
    if value not in ("", "full"):
        raise UsageError(
            f"{TRACEBACK} is {value!r}: full shows the frames of kernbench in tracebacks, nothing "
            "hides them"
        )
    return bool(value)


def ccl_trace_requested() -> bool:
    """Whether the user requests the trace of sends and receives.

    Raises `UsageError` for a value which is neither 1 nor 0 nor empty.
    """
    value = os.environ.get(CCL_TRACE, "")
    if value not in ("", "0", "1"):
        raise UsageError(
            f"{CCL_TRACE} is {value!r}: 1 prints every send and receive, 0 or nothing does not"
        )
    return value == "1"


def fast_forward_requested() -> bool:
    """Whether steps of products that repeat may be computed at once, as they are without a value.

    Raises `UsageError` for a value which is neither 1 nor 0 nor empty.
    """
    value = os.environ.get(FAST_FORWARD, "")
    if value not in ("", "0", "1"):
        raise UsageError(
            f"{FAST_FORWARD} is {value!r}: 0 simulates every step of a product, 1 or nothing "
            "computes those that repeat at once"
        )
    return value != "0" and fold_requested()


def fold_requested() -> bool:
    """Whether what is equal may be done once, as it is without a value; `UsageError` likewise."""
    value = os.environ.get(FOLD, "")
    if value not in ("", "0", "1"):
        raise UsageError(
            f"{FOLD} is {value!r}: 0 runs the function of each kernel on each PE and simulates "
            "every step of a product, 1 or nothing does what is equal once"
        )
    return value != "0"


def race_check_requested() -> str:
    """The check of each run that the user requests: 1, strict, or nothing.

    Raises `UsageError` for another value but 0.
    """
    value = os.environ.get(CHECK_RACES, "")
    if value not in ("", "0", "1", "strict"):
        raise UsageError(
            f"{CHECK_RACES} is {value!r}: 1 checks each run for races, strict with the order of "
            "CUDA, 0 or nothing does not"
        )
    return value.removeprefix("0")


def coordinator_pid() -> int | None:
    """The process that started this one as an LP, or None."""
    pid = os.environ.get(COORDINATOR_PID)
    return int(pid) if pid else None


def run_directory() -> Path | None:
    """The private directory of the run that this process was started for, or None."""
    directory = os.environ.get(RUN_DIRECTORY)
    return Path(directory) if directory else None


@dataclass(frozen=True)
class RankPlace:
    """Numbers of a rank: among all ranks, among those of its host, and of its host among all."""

    rank: int
    world_size: int
    local_rank: int
    local_world_size: int
    host: int
    hosts: int

    @classmethod
    def on_one_host(cls, rank: int, world_size: int) -> Self:
        """The numbers of rank `rank` if all ranks are on one host."""
        return cls(rank, world_size, rank, world_size, 0, 1)


def rank_environment(place: RankPlace, *, script: bool) -> dict[str, str]:
    """The variables with which `torchrun` starts the rank at `place`.

    Those that name torchrun itself are for a `script` only: a spawned function has none.
    """
    variables = {
        "RANK": place.rank,
        "LOCAL_RANK": place.local_rank,
        "WORLD_SIZE": place.world_size,
        "LOCAL_WORLD_SIZE": place.local_world_size,
        # Groups of torchrun are hosts.
        "GROUP_RANK": place.host,
        "GROUP_WORLD_SIZE": place.hosts,
        "ROLE_RANK": place.rank,
        "ROLE_NAME": "default",
        "ROLE_WORLD_SIZE": place.world_size,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": 29500,
    }
    if script:
        variables |= {
            "TORCHELASTIC_RUN_ID": "none",
            "TORCHELASTIC_RESTART_COUNT": 0,
            "TORCHELASTIC_MAX_RESTARTS": 0,
        }
    return {name: str(value) for name, value in variables.items()}
