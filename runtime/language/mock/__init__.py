"""The mock runtime: kernels without the chip, the same numbers bit for bit, and no time.

    from runtime import mock

    x = np.arange(8, dtype=np.float32)
    mock.launch(scale, x, 4, pes=2)

Arrays are passed as pointers, and what the kernel stores is in them afterwards. Errors are those of the chip: `KernelError` and
`PageFaultError` with kernel, line and PE. `launch` joins no PEs. For kernels that talk to each other make PEs, `connect` or
`join` them, and `run` their kernels together: receive rings have slots as on the chip, so kernels can deadlock, and the
`IpcqDeadlock` says who waits for whom.
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
from runtime.core.requests import QueuePair
from runtime.language.caller import call_kernel
from runtime.language.context import current_pe
from runtime.language.mock.memory import MockMemory
from runtime.language.mock.pe import MockPe
from runtime.language.value import Array
from runtime.model.directions import OPPOSITE
from runtime.model.topology import Topology

__all__ = ["MockMemory", "MockPe", "connect", "join", "launch", "run"]

Kernel = Callable[[], object]


def launch(
    kernel: Callable[..., object],
    *arguments: object,
    cubes: int = 1,
    pes: int = 1,
    topology: Topology | None = None,
) -> None:
    """Run `kernel(*arguments)` on `pes` PEs of each of `cubes` cubes, one PE after the other.

    A numpy array (C-contiguous, of a type that the hardware has) arrives as a `tl.Pointer` to it, everything else as it is. The
    GEMM tile and the size of the scratch are those of `topology`, by default of the file that ships with kernbench.
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
    places = [PeCoordinates(0, cube, pe) for cube in range(cubes) for pe in range(pes)]
    each = [
        MockPe(place, (pes, cubes), kernel=title, memory=memory, topology=topology)
        for place in places
    ]
    run([(pe, partial(kernel, *passed)) for pe in each])


def connect(pe: MockPe, direction: str, peer: MockPe, *, n_slots: int, slot_bytes: int) -> None:
    """Join `direction` of a PE and the opposite direction of its peer, with rings of `n_slots` slots of `slot_bytes` bytes."""
    if direction not in OPPOSITE:
        raise ValueError(f"direction {direction!r} does not exist{nearest(direction, OPPOSITE)}")
    back = OPPOSITE[direction]
    for at, way, other, opposite in ((pe, direction, peer, back), (peer, back, pe, direction)):
        at.queues.join(way, other.queues, opposite, n_slots, slot_bytes)


def join(
    pes: Mapping[PeCoordinates, MockPe],
    plan: Mapping[tuple[int, int], Sequence[QueuePair]],
    sip: int,
) -> None:
    """Give the PEs of a SIP the peers and the rings of an install plan."""
    for (cube, pe), pairs in plan.items():
        at = pes[PeCoordinates(sip, cube, pe)].queues
        for pair in pairs:
            ring = (pair.n_slots, pair.slot_size)
            receives, sends = pair.rx_base is not None, pair.tx_base is not None
            at.join(
                pair.direction,
                pes[pair.peer].queues,
                pair.peer_direction,
                *ring,
                receives=receives,
                sends=sends,
            )


def run(kernels: Sequence[tuple[MockPe, Kernel]]) -> None:
    """Run each kernel on its PE to the end of all that it started, in turn, each until it waits for another.

    What a kernel raises is raised here. `IpcqDeadlock` when none can go on, with a line for each PE that waits.
    """
    running = [(pe.queues, _started(pe, kernel)) for pe, kernel in kernels]
    while running:
        before = sum(pe.queues.moves for pe, _ in kernels)
        for _, program in running:
            program.switch()
        waiting = [(queues, program) for queues, program in running if not program.dead]
        if len(waiting) == len(running) and before == sum(pe.queues.moves for pe, _ in kernels):
            raise IpcqDeadlock(
                0, tuple(f"{queues.place}: {queues.waits_for}" for queues, _ in waiting), ()
            )
        running = waiting


def _passed(memory: MockMemory, name: str, argument: object) -> object:
    return (
        memory.place(cast("Array", argument), name)
        if isinstance(argument, np.ndarray)
        else argument
    )


def _started(pe: MockPe, kernel: Kernel) -> greenlet:
    def whole() -> None:
        call_kernel(pe.kernel, pe.place, kernel, ())
        pe.queues.finish()

    program = greenlet(whole)
    program.gr_context = copy_context()
    program.gr_context.run(current_pe.set, pe)
    return program
