"""One kernel on one PE: what `tl` asks becomes commands that the PE_CPU issues and the PE's engines carry out."""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Protocol, TypeVar

from runtime.dtypes import DType
from runtime.errors import KernelError, PageFaultError, nearest
from runtime.language.operations import concatenated, evaluate
from runtime.language.value import Pointer, Shape, Value
from runtime.requests import QueuePair
from runtime.simtime import ps_from_ns
from runtime.wire.messages import BlockedPe
from sip_node.completion import Completion, all_of, completed
from sip_node.components.commands import PeLaunch
from sip_node.components.memory_port import MemoryPort
from sip_node.components.pe_dma import PeDma
from sip_node.components.pe_ipcq import PeIpcq
from sip_node.components.pe_math import PeMath
from sip_node.components.pe_mmu import PeMmu
from sip_node.components.surroundings import Surroundings
from sip_node.components.wiring import PeWiring
from sip_node.program import Program

_T = TypeVar("_T")


class Engines(Protocol):
    """The engines of a PE that its CPU commands."""

    dma: PeDma
    mmu: PeMmu
    ipcq: PeIpcq
    math: PeMath
    tcm_port: MemoryPort


class KernelRun:
    """The `KernelContext` of a running kernel. Its methods are called by the kernel's greenlet and block it."""

    def __init__(self, chip: Surroundings, wiring: PeWiring, engines: Engines, launch: PeLaunch) -> None:
        pe = chip.topology.pe
        self._chip, self._wiring, self._engines, self._launch = chip, wiring, engines, launch
        self._engine = wiring.engine
        self._issue_ps = ps_from_ns(pe.cpu.overhead_ns) + ps_from_ns(pe.scheduler.overhead_ns)
        self._mmu_ps = ps_from_ns(pe.mmu.overhead_ns)
        self._scratch_bytes = chip.topology.kernel_scratch_bytes
        self._scratch_used = 0
        self.program: Program | None = None
        self.blocked: BlockedPe | None = None

    def program_id(self, axis: int) -> int:
        """PE in its cube (axis 0) or cube in its SIP (axis 1)."""
        self._check_axis(axis)
        return self._wiring.place.pe if axis == 0 else self._wiring.place.cube

    def num_programs(self, axis: int) -> int:
        """PEs of this cube (axis 0) or cubes (axis 1) that run this launch."""
        self._check_axis(axis)
        return self._launch.pes if axis == 0 else self._launch.cubes

    def load(self, pointer: Pointer, shape: Shape) -> Value:
        """DMA from memory to TCM."""
        value = Value(shape, pointer.dtype, None)
        self._reserve_scratch(value.nbytes)
        if value.nbytes == 0:
            return Value.from_bytes(b"", shape, pointer.dtype)
        pieces = self._translate(pointer, value.nbytes)
        data = self._command(self._mmu_ps, lambda: all_of([self._engines.dma.read(*piece) for piece in pieces]))
        return Value.from_bytes(b"".join(data), shape, pointer.dtype)

    def store(self, pointer: Pointer, value: Value) -> None:
        """DMA from TCM to memory."""
        if pointer.dtype != value.dtype:
            raise self._error(f"store of {value.dtype.name} through a pointer to {pointer.dtype.name}")
        if value.nbytes == 0:
            return
        data, writes, done = value.tobytes(), list[tuple[int, int, bytes]](), 0
        for address, nbytes in self._translate(pointer, value.nbytes):
            writes.append((address, nbytes, data[done : done + nbytes]))
            done += nbytes
        self._command(self._mmu_ps, lambda: all_of([self._engines.dma.write(*write) for write in writes]))

    def math(self, name: str, operands: Sequence[Value | float]) -> Value:
        """One elementwise operation: fetch the operands, compute, store the result in TCM."""
        result = self._evaluated(lambda: evaluate(name, operands))
        fetched = sum(operand.nbytes for operand in operands if isinstance(operand, Value))
        self._compute(name, fetched, result)
        return result

    def cat(self, values: Sequence[Value]) -> Value:
        """A copy inside TCM."""
        result = self._evaluated(lambda: concatenated(values))
        self._compute("cat", result.nbytes, result)
        return result

    def send(self, direction: str, value: Value) -> None:
        """Slot by slot: take a slot of the peer's ring, sleep if there is none, write it."""
        pair, data = self._pair(direction), value.tobytes()
        for done in range(0, value.nbytes, pair.slot_size):
            nbytes = min(pair.slot_size, value.nbytes - done)
            self._block("send", direction)
            slot = self._command(0, lambda: self._engines.ipcq.acquire(direction))
            self.blocked = None
            piece = data[done : done + nbytes]
            self._wait(self._engines.dma.push, slot, nbytes, piece, pair.packet_bytes)

    def recv(self, direction: str, shape: Shape, dtype: DType) -> Value:
        """Slot by slot: sleep until one is full, copy it out of the ring, give it back."""
        pair, value = self._pair(direction), Value(shape, dtype, None)
        self._reserve_scratch(value.nbytes)
        pieces: list[bytes] = []
        for done in range(0, value.nbytes, pair.slot_size):
            expected = min(pair.slot_size, value.nbytes - done)
            self._block("recv", direction)
            slot, nbytes = self._command(0, lambda: self._engines.ipcq.arrival(direction))
            self.blocked = None
            if nbytes != expected:
                raise self._error(
                    f"recv from {direction} expects {expected} bytes in this slot, {nbytes} came from {pair.peer}"
                )
            pieces.append(self._wait(self._engines.dma.read, slot, nbytes, "ipcq_recv"))
            self._wait(self._release, direction)
        return Value.from_bytes(b"".join(pieces), shape, dtype)

    @contextmanager
    def scratch(self) -> Generator[None]:
        """Give back at the end what was allocated inside."""
        used = self._scratch_used
        yield
        self._scratch_used = used

    def _compute(self, name: str, fetched: int, result: Value) -> None:
        self._reserve_scratch(result.nbytes)
        if result.nbytes == 0:
            return

        def start() -> Completion[None]:
            done = Completion[None]()
            end_ps = self._engines.math.run(
                name, fetched, result.numel, result.shape, result.dtype.name, result.nbytes
            )  # fmt: skip
            self._chip.outlook.computing((self._wiring.place.cube, self._wiring.place.pe), end_ps)
            self._engine.at(end_ps, done.complete, None)
            return done

        self._command(0, start)

    def _command(self, extra_ps: int, start: Callable[[], Completion[_T]]) -> _T:
        """Issue one command: it costs the CPU and the scheduler their overhead, then the engine has it."""

        def issue() -> Completion[_T]:
            done = Completion[_T]()

            def forward(completion: Completion[_T]) -> None:
                if completion.error is None:
                    done.complete(completion.value)
                else:
                    done.fail(completion.error)

            def begin() -> None:
                start().then(forward)

            self._engine.at(self._engine.now_ps + self._issue_ps + extra_ps, begin)
            return done

        return self._wait(issue)

    def _wait(self, start: Callable[..., Completion[_T]], *args: object) -> _T:
        assert self.program is not None
        return self.program.wait(start, *args)

    def _release(self, direction: str) -> Completion[None]:
        self._engines.ipcq.release(direction)
        return completed(None)

    def _translate(self, pointer: Pointer, nbytes: int) -> list[tuple[int, int]]:
        pieces = self._engines.mmu.translate(pointer.address, nbytes)
        if pieces is None:
            where = self._engines.mmu.nearest(pointer.address)
            raise PageFaultError(self._launch.name, self._wiring.place, pointer.address, nbytes, where)
        return pieces

    def _pair(self, direction: str) -> QueuePair:
        ipcq = self._engines.ipcq
        if direction not in ipcq.directions:
            raise self._error(f"no queue in direction {direction!r} is installed here{nearest(direction, ipcq.directions)}")
        return ipcq.pair(direction)

    def _block(self, operation: str, direction: str) -> None:
        place, pair = self._wiring.place, self._pair(direction)
        self.blocked = BlockedPe(*place, self._launch.name, operation, direction, pair.peer, self._engine.now_ps)

    def _reserve_scratch(self, nbytes: int) -> None:
        self._scratch_used += nbytes
        if self._scratch_used > self._scratch_bytes:
            raise self._error(
                f"kernel scratch is full: {self._scratch_used - nbytes:,} of {self._scratch_bytes:,} bytes are in use and "
                f"{nbytes:,} more are asked for; release what is no longer needed with `with tl.scratch():`"
            )

    def _evaluated(self, compute: Callable[[], Value]) -> Value:
        try:
            return compute()
        except (TypeError, ValueError) as error:
            raise self._error(str(error)) from None

    def _check_axis(self, axis: int) -> None:
        if axis not in (0, 1):
            raise self._error(f"axis {axis}: programs have axis 0 (PE in its cube) and axis 1 (cube)")

    def _error(self, problem: str) -> KernelError:
        return KernelError(self._launch.name, self._wiring.place, problem)
