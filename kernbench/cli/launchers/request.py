"""The request that `kernbench node` has read from its command line."""

from dataclasses import dataclass

from kernbench.cli.launchers.meeting import MeetingOptions
from kernbench.command.run_request import RunRequest


@dataclass(frozen=True)
class NodeRequest:
    """A process of a run: `rank` of `world_size`, where options give it.

    `run` is what is simulated. `command` is a hash of the part of the command line which is the
    same for all processes.
    """

    run: RunRequest
    rank: int | None
    world_size: int | None
    meeting: MeetingOptions
    command: str
