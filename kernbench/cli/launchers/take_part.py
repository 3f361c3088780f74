"""Takes part in a run as one of the processes that a launcher has started.

The process of rank 0 is the coordinator, with LP 0 as its child. Any other process becomes an LP:
it keeps its process id, and the launcher its output.
"""

import os
import signal
import sys
from dataclasses import replace
from importlib import import_module
from types import FrameType
from typing import Any, NoReturn

from coordinator.launch.launcher import (
    InterpreterLauncher,
    SiteArguments,
    joining_arguments,
    lp_environment,
)
from coordinator.launch.node_launch import NodeLaunch
from kernbench.cli.launchers.meeting import Meeting, Store, meeting_of
from kernbench.cli.launchers.place import TORCHRUN, Place, place_of
from kernbench.cli.launchers.request import NodeRequest
from kernbench.command.options import SimulationOptions
from kernbench.command.run_request import RunRequest
from kernbench.command.simulation import checked_plan, simulate
from runtime.core.errors import UsageError
from runtime.wire.environment import SECRET, SECRET_FILE
from runtime.wire.run_id import run_id_pipe


def take_part(request: NodeRequest) -> int:
    """Take part in the run; returns the exit code, in the process of rank 0 alone.

    Raises `UsageError` where the process has no place in a run, or may not listen.
    """
    place = place_of(os.environ, request.rank, request.world_size)
    run = _of_all_processes(request.run, place)
    # In every process, although only rank 0 needs the plan: the others would wait for a rank 0
    # that has found a wrong file.
    checked_plan(run)
    meeting = meeting_of(place, request.meeting, os.environ, _torchrun_store)
    site = SiteArguments(meeting.directory, meeting.listen, request.command)
    # Programs print their environment.
    for name in (SECRET, SECRET_FILE):
        os.environ.pop(name, None)
    if place.rank:
        _become_an_lp(place, meeting, site)
    return _coordinate(run, place, meeting, site)


def _coordinate(run: RunRequest, place: Place, meeting: Meeting, site: SiteArguments) -> int:
    if place.launcher == TORCHRUN:
        # torchrun sends SIGTERM to all workers as soon as one ends. The run notices that itself,
        # and the cause is yet to be printed.
        signal.signal(signal.SIGTERM, _ignored)
    launch = NodeLaunch(
        # Launchers send their signals to the group of this process.
        InterpreterLauncher(own_group=True),
        run_id=meeting.run_id,
        control=meeting.control,
        site=site,
        directory=meeting.joined,
        publish=meeting.publish,
    )
    with launch:
        return simulate(run, launch)


def _become_an_lp(place: Place, meeting: Meeting, site: SiteArguments) -> NoReturn:
    """Replace this program by that of an LP."""
    if meeting.joined is not None:
        site = replace(site, lock=meeting.joined.keep_over_exec())
    variables = lp_environment(os.environ)
    sys.stdout.flush()
    sys.stderr.flush()
    with run_id_pipe(meeting.run_id) as file:
        os.set_inheritable(file, True)  # noqa: FBT003 - positional only
        arguments = joining_arguments(meeting.control, file, place.rank, site)
        command = [*InterpreterLauncher().command, *arguments]
        os.execve(command[0], command, variables)  # noqa: S606 - our own command


def _of_all_processes(run: RunRequest, place: Place) -> RunRequest:
    """The request with a process of the launcher for each LP."""
    world_size, options = place.world_size, run.options
    sips = options.sips or world_size
    if sips < world_size:
        raise UsageError(
            f"--sips {sips} for {world_size} processes: each process has one SIP or more"
        )
    if (run.script or run.module) and sips != world_size:
        raise UsageError(
            f"--sips {sips} for {world_size} processes: a script has a process for each SIP; "
            f"start {sips}"
        )
    return replace(run, options=_with_counts(options, sips, world_size))


def _with_counts(options: SimulationOptions, sips: int, procs: int) -> SimulationOptions:
    return replace(options, sips=sips, procs=procs)


def _torchrun_store() -> Store:
    # PyTorch is there: it has started this process. It takes a second to import.
    rendezvous: Any = import_module("torch.distributed.rendezvous")
    store: Store = next(rendezvous.rendezvous("env://"))[0]
    return store


def _ignored(_signum: int, _frame: FrameType | None) -> None:
    """Not `SIG_IGN`, which child processes would inherit."""
