"""PEs that run kernels without a chip: no time passes, but a receive ring has its slots, so a kernel can still deadlock."""

from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass, field

import numpy as np
from greenlet import getcurrent, greenlet

from runtime import dtypes
from runtime.ccl.directions import OPPOSITE
from runtime.dtypes import DType
from runtime.language.context import current_pe
from runtime.language.operations import concatenated, evaluate
from runtime.language.value import Array, Pointer, Shape, Value
from runtime.places import Place
from runtime.requests import QueuePair

Kernel = Callable[[], object]
ORIGIN = Place(0, 0, 0)


@dataclass
class MockPe:
    """A `KernelContext`. `memory` holds an array at every address that the kernel uses; `sent` counts bytes by direction."""

    place: Place = ORIGIN
    launch: tuple[int, int] = (1, 1)
    memory: dict[int, Array] = field(default_factory=dict[int, Array])
    peers: dict[str, "MockPe"] = field(default_factory=dict[str, "MockPe"])
    ring_slots: int = 1 << 30
    slot_bytes: int = 4096
    sent: dict[str, int] = field(default_factory=dict[str, int])
    rings: dict[str, deque[bytes]] = field(default_factory=dict[str, deque[bytes]])
    waits: str = ""

    def put(self, address: int, elements: Array) -> Pointer:
        """Lay elements at an address and point there."""
        self.memory[address] = elements
        return Pointer(address, dtypes.from_numpy(elements.dtype))

    def program_id(self, axis: int) -> int:
        return (self.place.pe, self.place.cube)[axis]

    def num_programs(self, axis: int) -> int:
        return self.launch[axis]

    def load(self, pointer: Pointer, shape: Shape) -> Value:
        flat = self._elements(pointer)[: int(np.prod(shape, dtype=np.int64))]
        return Value(shape, pointer.dtype, flat.reshape(shape).copy())

    def store(self, pointer: Pointer, value: Value) -> None:
        assert value.data is not None
        self._elements(pointer)[: value.numel] = value.data.reshape(-1)

    def math(self, name: str, operands: Sequence[Value | float]) -> Value:
        return evaluate(name, operands)

    def cat(self, values: Sequence[Value]) -> Value:
        return concatenated(values)

    def send(self, direction: str, value: Value) -> None:
        ring = self.peers[direction].rings.setdefault(OPPOSITE[direction], deque())
        data = value.tobytes()
        for done in range(0, value.nbytes, self.slot_bytes):
            self._until(lambda: len(ring) < self.ring_slots, f"send {direction}")
            ring.append(data[done : done + self.slot_bytes])
        self.sent[direction] = self.sent.get(direction, 0) + value.nbytes

    def recv(self, direction: str, shape: Shape, dtype: DType) -> Value:
        ring = self.rings.setdefault(direction, deque())
        empty, data = Value(shape, dtype, None), b""
        while len(data) < empty.nbytes:
            self._until(lambda: bool(ring), f"recv {direction}")
            data += ring.popleft()
        assert len(data) == empty.nbytes, f"{self.place}: recv {direction} of {empty.nbytes} bytes got {len(data)}"
        return Value(shape, dtype, np.frombuffer(data, dtype.numpy).reshape(shape))

    @contextmanager
    def scratch(self) -> Generator[None]:
        yield

    def _until(self, condition: Callable[[], bool], what: str) -> None:
        while not condition():
            self.waits = what
            parent = getcurrent().parent
            assert parent is not None
            parent.switch()
        self.waits = ""

    def _elements(self, pointer: Pointer) -> Array:
        for base, elements in self.memory.items():
            if base <= pointer.address <= base + elements.nbytes:
                return elements.reshape(-1)[(pointer.address - base) // elements.itemsize :]
        raise AssertionError(f"{self.place}: nothing lies at {pointer.address:#x}")


def join(pes: Mapping[Place, MockPe], plan: Mapping[tuple[int, int], Sequence[QueuePair]], sip: int) -> None:
    """Give the PEs of a SIP the peers and the rings of an install plan."""
    for (cube, pe), pairs in plan.items():
        at = pes[Place(sip, cube, pe)]
        for pair in pairs:
            at.peers[pair.direction] = pes[pair.peer]
            at.ring_slots, at.slot_bytes = pair.n_slots, pair.slot_size


def run(kernels: Sequence[tuple[MockPe, Kernel]]) -> list[str]:
    """Run kernels in turn, each until it waits; what is left when none can go on, as `place: what it waits for`."""
    running = [(pe, _started(pe, kernel)) for pe, kernel in kernels]
    while running:
        before = [_progress(pe) for pe, _ in kernels]
        for _, program in running:
            program.switch()
        running = [(pe, program) for pe, program in running if not program.dead]
        if running and before == [_progress(pe) for pe, _ in kernels]:
            return [f"{pe.place}: {pe.waits}" for pe, _ in running]
    return []


def _started(pe: MockPe, kernel: Kernel) -> greenlet:
    program = greenlet(kernel)
    program.gr_context = copy_context()
    program.gr_context.run(current_pe.set, pe)
    return program


def _progress(pe: MockPe) -> tuple[object, ...]:
    return (dict(pe.sent), {way: len(ring) for way, ring in pe.rings.items()}, pe.waits)
