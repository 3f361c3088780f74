"""The mock runtime executes kernels without the chip: the same results bit for bit, and no
simulated time.

    from kernbench import mock

    x = np.arange(8, dtype=np.float32)
    mock.launch(scale, x, 4, pes=2)

Arrays are passed as pointers, and stores of the kernel change them. Errors are those of the chip:
`KernelError` and `PageFaultError` with kernel, line and PE. `launch` connects the PEs of a SIP if
it gets `queues`. For kernels that exchange values otherwise, make PEs, `connect` or `join` them,
and `run` their kernels together. Receive rings have slots as on the chip, so kernels can deadlock:
the `IpcqDeadlock` has a line for every PE that waits.
"""

from collections.abc import Callable, Mapping, Sequence
from contextvars import copy_context
from functools import partial
from inspect import signature
from typing import cast

import numpy as np
from greenlet import greenlet

from runtime.core.coordinates import PeCoordinates
from runtime.core.errors import IpcqDeadlock, nearest
from runtime.core.program_grid import ALONE, DealtPrograms, checked_grid
from runtime.core.requests import QueuePair
from runtime.language.caller import call_kernel, program_line
from runtime.language.mock.barrier import MockBarrier
from runtime.language.mock.launch_check import load_check
from runtime.language.mock.memory import MockMemory
from runtime.language.mock.pe import MockPe
from runtime.language.running import current_pe
from runtime.language.value import Array
from runtime.model.directions import OPPOSITE
from runtime.model.topology import Topology

__all__ = ["MockMemory", "MockPe", "connect", "join", "launch", "run"]

Kernel = Callable[[], object]

InstalledQueues = Mapping[tuple[int, int], Sequence[QueuePair]]
"""The queue pairs of the PEs of a SIP, by (cube, PE)."""


def launch(
    kernel: Callable[..., object],
    *arguments: object,
    cubes: int = 1,
    pes: int = 1,
    topology: Topology | None = None,
    queues: InstalledQueues | None = None,
    grid: Sequence[int] | None = None,
    check: bool = False,
) -> None:
    """Run `kernel(*arguments)` on `pes` PEs of each of `cubes` cubes, one PE after the other.

    A numpy array (C-contiguous, of an element type of the hardware) is passed as a `tl.Pointer` to
    it, every other argument unchanged. The GEMM tile and the size of the scratch are those of
    `topology`, by default of the file that ships with kernbench. `queues` connect the PEs, as
    `queues=NAME` of `torch.launch` does on the chip; `runtime.ccl.plan:plan_of_one_sip(NAME)` makes
    them. `grid` deals programs to the PEs as `torch.launch` does.

    With `check`, a `FindingsError` has the races and undefined values that `kernbench check` finds
    in a run on the chip, without times; the elements of arrays are defined.
    """
    if cubes < 1 or pes < 1:
        raise ValueError(f"a kernel runs on at least one PE, not on {cubes} cubes of {pes} PEs")
    memory, title = MockMemory(), getattr(kernel, "__name__", type(kernel).__name__)
    names = [
        *signature(kernel).parameters,
        *(f"argument {index}" for index in range(len(arguments))),
    ]
    passed = [
        _passed(memory, name, argument) for name, argument in zip(names, arguments, strict=False)
    ]
    everywhere = [PeCoordinates(0, cube, pe) for cube in range(cubes) for pe in range(pes)]
    if grid is not None and queues is not None:
        raise ValueError(f"grid {grid!r} and queues: {ALONE}")
    dealt, barrier = _dealt(grid, len(everywhere)), MockBarrier(everywhere)
    checked = load_check()(title, program_line(), memory.arrays) if check else None
    each = [
        (MockPe if checked is None else checked.pe)(
            coordinates,
            (pes, cubes),
            kernel=title,
            memory=memory,
            topology=topology,
            dealt=programs,
            barrier=barrier,
        )
        for coordinates, programs in zip(everywhere, dealt, strict=False)
    ]
    if queues is not None:
        # The queues of a PE that does not run the kernel exist on the chip, too.
        others = {PeCoordinates(0, *coordinates) for coordinates in queues} - set(everywhere)
        every_pe = {pe.coordinates: pe for pe in each}
        every_pe |= {
            coordinates: MockPe(coordinates, (pes, cubes), kernel=title)
            for coordinates in sorted(others)
        }
        join(every_pe, queues, 0)
    run([(pe, partial(kernel, *passed)) for pe in each])
    if checked is not None:
        checked.check()


def connect(pe: MockPe, direction: str, peer: MockPe, *, n_slots: int, slot_bytes: int) -> None:
    """Connect `direction` of a PE with the opposite direction of its peer, by rings of `n_slots`
    slots of `slot_bytes` bytes.
    """
    if direction not in OPPOSITE:
        raise ValueError(f"direction {direction!r} does not exist{nearest(direction, OPPOSITE)}")
    back = OPPOSITE[direction]
    pe.queues.join(direction, peer.queues, back, n_slots, slot_bytes)
    peer.queues.join(back, pe.queues, direction, n_slots, slot_bytes)


def join(pes: Mapping[PeCoordinates, MockPe], plan: InstalledQueues, sip: int) -> None:
    """Install an install plan on the PEs of a SIP: their peers and receive rings."""
    for (cube, pe), pairs in plan.items():
        own = pes[PeCoordinates(sip, cube, pe)].queues
        for pair in pairs:
            ring = (pair.n_slots, pair.slot_size)
            # A direction of a one-way ring has one ring only.
            receives, sends = pair.rx_base is not None, pair.tx_base is not None
            own.join(
                pair.direction,
                pes[pair.peer].queues,
                pair.peer_direction,
                *ring,
                receives=receives,
                sends=sends,
            )


def run(kernels: Sequence[tuple[MockPe, Kernel]]) -> None:
    """Run the kernels to completion, in turn, each until it waits for another one.

    An exception of a kernel is raised here. `IpcqDeadlock`, with a line for each PE that waits, if
    no kernel can proceed.
    """
    running = [(pe.queues, _started(pe, kernel)) for pe, kernel in kernels]
    while running:
        before = sum(pe.queues.moves for pe, _ in kernels)
        for _, program in running:
            program.switch()
        waiting = [(queues, program) for queues, program in running if not program.dead]
        # A round in which no kernel has ended and no slot was filled or emptied changes nothing,
        # and so would all later rounds.
        if len(waiting) == len(running) and before == sum(pe.queues.moves for pe, _ in kernels):
            raise IpcqDeadlock(
                0, tuple(f"{queues.coordinates}: {queues.waits_for}" for queues, _ in waiting), ()
            )
        running = waiting


def _dealt(grid: Sequence[int] | None, pes: int) -> list[DealtPrograms | None]:
    """The programs of each PE that has some; None for all of them without a grid."""
    if grid is None:
        return [None] * pes
    checked = checked_grid(grid)
    return [checked.dealt(pe, pes) for pe in range(min(pes, checked.count))]


def _passed(memory: MockMemory, name: str, argument: object) -> object:
    return (
        memory.map(cast("Array", argument), name) if isinstance(argument, np.ndarray) else argument
    )


def _started(pe: MockPe, kernel: Kernel) -> greenlet:
    def whole() -> None:
        for program in pe.programs():
            call_kernel(pe.kernel, pe.coordinates, kernel, (), program)
        pe.queues.finish()

    program = greenlet(whole)
    # The current PE is a context variable: each kernel needs a context of its own.
    program.gr_context = copy_context()
    program.gr_context.run(current_pe.set, pe)
    return program
