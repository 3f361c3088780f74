"""The interface between a chip and the kernels that run on it.

For a chip, a kernel has a start, an end, and waits. It is a program of the user, which
`sip_node.programs` runs beside the event loop. So the chip receives the function that starts one.

At the barrier of a launch its PEs signal to the M_CPUs, which release them when all have come.
Every signal is a control packet on the links of the chip. The M_CPU of a cube counts its PEs, that
of the first cube of the launch the cubes:

    PE --arrived--> M_CPU --arrived--> M_CPU of the first cube      the last PE of a cube, each cube
    PE <-released-- M_CPU <-released-- M_CPU of the first cube      the last cube: all PEs have come

A launch in one cube has no signals between M_CPUs, and neither has the barrier of a cube.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, Protocol

from greenlet import GreenletExit
from msgspec import Struct

from runtime.core.coordinates import PeCoordinates
from runtime.core.program_grid import DealtPrograms
from runtime.core.requests import HardwareThread, Transfer
from runtime.core.run_tables import NONE
from runtime.wire.reports import BlockedPe
from sip_node.chip.completion import Completion
from sip_node.chip.mapping.stored_ranges import ReleasedRanges, StoredRanges
from sip_node.chip.store_order import KernelPoint


class ProgramRaised(Exception):  # noqa: N818 - it wraps the error
    """A rank program or a kernel of its SIP raised. Fields: rank, the exception."""

    def __init__(self, rank: int, error: BaseException) -> None:
        super().__init__(rank, error)
        self.rank, self.error = rank, error

    def __str__(self) -> str:
        return f"rank {self.rank}: {type(self.error).__name__}: {self.error}"


class ProgramDropped(GreenletExit):
    """A program that waits is deleted at the end of a run.

    Greenlets raise their own `GreenletExit` there, which a program may raise as well.
    """

    def __str__(self) -> str:
        return "the run has ended while the program waited for its device"


class LaunchBarrier:
    """The order of the PEs of one launch: its atomic operations, and the counts of the M_CPUs on
    `cubes`, which maps cubes to their PEs.

    `waiting` are the PEs (cube, pe) that have called it and are not released, in that order.
    """

    def __init__(
        self, cubes: Mapping[int, Sequence[int]], stored: StoredRanges | None = None
    ) -> None:
        self.cubes, self.stored = cubes, stored
        self.waiting: dict[tuple[int, int], None] = {}
        self._arrived: dict[int, int] = {}
        self._complete_cubes = 0
        self._of_cubes: dict[int, LaunchBarrier] = {}
        self._entered: list[KernelPoint | None] = []
        self.points: tuple[KernelPoint | None, ...] = ()
        """The points of kernels at which all its PEs have entered the barrier of a cube."""
        self.atomics = ReleasedRanges()
        """The atomic operations of the launch, in their order."""

    def of_cube(self, cube: int) -> "LaunchBarrier":
        """The barrier of the launch's PEs in one cube, which orders their stores alone."""
        if cube not in self._of_cubes:
            self._of_cubes[cube] = LaunchBarrier({cube: self.cubes[cube]})
        return self._of_cubes[cube]

    @property
    def first_cube(self) -> int:
        """The cube whose M_CPU counts the cubes."""
        return min(self.cubes)

    @property
    def missing(self) -> list[tuple[int, int]]:
        """The PEs that have not called it, in ascending order."""
        every_pe = [(cube, pe) for cube, pes in self.cubes.items() for pe in pes]
        return sorted(each for each in every_pe if each not in self.waiting)

    def enter(self, point: KernelPoint | None) -> None:
        """A PE enters the barrier of a cube at a point of its kernel."""
        self._entered.append(point)
        # No PE enters again before it has left, so the points before these are joined by all.
        if len(self._entered) == sum(map(len, self.cubes.values())):
            self.points, self._entered = tuple(self._entered), []

    def arrived(self, cube: int) -> bool:
        """A PE of a cube has arrived; returns whether it is the last one of the cube."""
        # Removed with the last PE, so the barrier can be called again: a PE that is released first
        # may call it before others of its cube are released.
        count = self._arrived.pop(cube, 0) + 1
        if count < len(self.cubes[cube]):
            self._arrived[cube] = count
            return False
        return True

    def cube_arrived(self) -> bool:
        """All PEs of a cube have arrived; returns whether it is the last cube."""
        self._complete_cubes += 1
        if self._complete_cubes < len(self.cubes):
            return False
        self._complete_cubes = 0
        # From here on stores are ordered behind those before the barrier.
        if self.stored is not None:
            self.stored.clear()
        return True


class BarrierSignal(Struct, frozen=True):
    """A control packet of a barrier, from or to a PE or an M_CPU."""

    barrier: LaunchBarrier
    step: Literal["pe arrived", "cube arrived", "released"]


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
