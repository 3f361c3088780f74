"""The interface between a chip and the kernels that run on it.

For a chip, a kernel has a start, an end, and waits. It is a program of the user, which
`sip_node.programs` runs beside the event loop. So the chip receives the function that starts one.
"""

from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

from runtime.core.coordinates import PeCoordinates
from runtime.core.program_grid import DealtPrograms
from runtime.core.requests import HardwareThread, Transfer
from runtime.core.run_tables import NONE
from runtime.wire.reports import BlockedPe
from sip_node.chip.barrier import LaunchBarrier
from sip_node.chip.completion import Completion
from sip_node.chip.stored_ranges import StoredRanges


class PeLaunch(Struct, frozen=True):
    """Run a kernel at `start_ps`; `pes` and `cubes` are the size of the launch, `arguments` those
    of this PE.

    `queues` names the queue table of the kernel, `call` the collective call that it belongs to, if
    any, and `line` is the source line of the rank program that launched it. `stored` is common to
    all PEs of the launch; a launch on one PE has none. A kernel with a `transfer` moves a part of
    the message with the id `call`. `thread` is the hardware context of the PE that runs the kernel.
    `barrier` is common to all PEs of the launch. With `programs` of a grid, the kernel runs once
    for each. `command` is the number of the command of the host.
    """

    name: str
    kernel: Callable[..., object]
    arguments: tuple[object, ...]
    start_ps: int
    pes: int
    cubes: int
    thread: HardwareThread
    queues: str = ""
    call: str = ""
    line: str = ""
    stored: StoredRanges | None = None
    transfer: Transfer | None = None
    programs: DealtPrograms | None = None
    barrier: LaunchBarrier | None = None
    command: int = NONE


class RunningKernel(Protocol):
    """A kernel that has started on a PE."""

    @property
    def finished(self) -> Completion[object]:
        """Completes when the kernel and all operations that it started have ended.

        It fails with what the kernel raises.
        """
        ...

    def blocked(self) -> BlockedPe | None:
        """The wait for a peer, if there is one."""
        ...

    @property
    def waits_since_ps(self) -> int | None:
        """The begin of the wait for a peer, if there is one."""
        ...

    def close(self) -> None:
        """Release what the kernel holds of the PE."""
        ...


StartKernel = Callable[[PeCoordinates, PeLaunch], RunningKernel]
"""Starts a kernel on a PE now, and returns when the kernel first waits or has ended."""


def no_kernels(coordinates: PeCoordinates, launch: PeLaunch) -> RunningKernel:
    """The `StartKernel` of a chip that is built without programs."""
    raise AssertionError(f"kernel {launch.name!r} on {coordinates}: this chip runs no programs")
