"""One kernel on one PE: what `tl` asks becomes commands that the PE_CPU issues and the PE's engines carry out."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from contextvars import copy_context
from math import prod
from typing import Any, TypeVar

from msgspec.structs import replace

from runtime.core.dtypes import DType
from runtime.core.errors import nearest
from runtime.core.requests import QueuePair
from runtime.core.simtime import ps_from_ns
from runtime.core.trace import Operand
from runtime.language.caller import call_kernel, kernel_line
from runtime.language.context import PendingResult, current_pe
from runtime.language.gemm import Gemm
from runtime.language.operations import compute, infer
from runtime.language.value import Pointer, Ref, Shape, Value, row_major
from runtime.model.tiles import TileSize
from runtime.wire.messages import BlockedPe
from sip_node.chip.completion import Completion, all_of, completed
from sip_node.chip.kernel import PeLaunch, RunningKernel
from sip_node.chip.pe.pe import Pe
from sip_node.chip.pe.slot_trace import SlotTrace
from sip_node.chip.strided_block import is_packed, nbytes_of, part_of
from sip_node.programs.kernel_faults import KernelFaults
from sip_node.programs.kernel_memory import KernelMemory, Strides
from sip_node.programs.kernel_receive import Receive, Receives
from sip_node.programs.program import Program

_T = TypeVar("_T")


class Operation:
    """An operation of a kernel that engines carry out; `result` is the value it leaves in TCM, if any.

    `waiting` says which peer it depends on; without one, `earliest_end_ps` bounds its end.
    """

    def __init__(
        self,
        run: "KernelRun",
        done: Completion[Any],
        result: Value | None,
        waiting: BlockedPe | None,
        earliest_end_ps: Callable[[], int],
    ) -> None:
        self.done, self.result, self.waiting, self.earliest_end_ps = (
            done,
            result,
            waiting,
            earliest_end_ps,
        )
        self._run = run

    def wait(self) -> Value | None:
        """Block the kernel until the operation is complete."""
        self._run.await_end(self)
        return self.result


class KernelRun:
    """The `KernelContext` of a running kernel. Its methods are called by the kernel's greenlet and block it."""

    def __init__(self, engines: Pe, launch: PeLaunch) -> None:
        chip, wiring = engines.chip, engines.context
        pe, place = chip.topology.pe, wiring.coordinates
        self._chip, self._wiring, self._engines, self._launch = chip, wiring, engines, launch
        self._engine = wiring.engine
        self._issue_ps = ps_from_ns(pe.cpu.overhead_ns) + ps_from_ns(pe.scheduler.overhead_ns)
        self._mmu_ps = ps_from_ns(pe.mmu.overhead_ns)
        self._faults = KernelFaults(launch.name, place, launch.call)
        self._memory = KernelMemory(
            chip.topology, launch.thread, wiring.tcm.base, engines.mmu, self._faults
        )
        tell = chip.log.transferred
        self._trace = None if tell is None else SlotTrace(chip, wiring, launch.name, tell)
        self._queues = engines.ipcq.table(launch.queues)
        self._queues.call = launch.call or self._queues.call
        self._receives = Receives(
            self._engine, engines.dma, self._queues, self._issue_ps, self._faults, self._trace
        )
        self._open: list[Operation] = []
        self._waits: BlockedPe | None = None
        self.program: Program | None = None

    def execute(self) -> None:
        """The kernel from its first line to the end of the last operation that it started."""
        launch = self._launch
        try:
            call_kernel(launch.name, self._wiring.coordinates, launch.kernel, launch.arguments)
        except Exception as error:
            # The traceback shows the kernel's lines, and for a collective none of the user's.
            error.add_note(f"kernel {launch.name!r} was launched at {launch.line}")
            raise
        while self._open:
            self._open[0].wait()

    def close(self) -> None:
        """The kernel has ended."""
        self._receives.close()

    def blocked(self) -> BlockedPe | None:
        """What the kernel waits for, if it waits for a peer."""
        if self._waits is None or self.program is None:
            return self._waits
        # Only who asks pays for finding the line: a kernel sends many slots and waits for few.
        line = self._waits.line or kernel_line(self.program.frame)
        # The lines of a collective's kernel are none of the user's.
        return replace(
            self._waits,
            line=f"{line}, called at {self._launch.line}" if self._launch.call else line,
        )

    @property
    def gemm_tile(self) -> TileSize:
        """The largest tile of the GEMM engine."""
        return self._chip.topology.tile

    def program_id(self, axis: int) -> int:
        """PE in its cube (axis 0) or cube in its SIP (axis 1)."""
        self._check_axis(axis)
        return self._wiring.coordinates.pe if axis == 0 else self._wiring.coordinates.cube

    def num_programs(self, axis: int) -> int:
        """PEs of this cube (axis 0) or cubes (axis 1) that run this launch."""
        self._check_axis(axis)
        return self._launch.pes if axis == 0 else self._launch.cubes

    def load(self, pointer: Pointer, shape: Shape, strides: Strides) -> Value:
        """DMA from memory to TCM."""
        value, data = self._memory.new(shape, pointer.dtype), list[bytes]()
        if value.nbytes:
            blocks = self._memory.transfers(value.operand, pointer, strides)
            data = self._command(
                self._mmu_ps,
                lambda: all_of([self._engines.dma.read(far, near) for near, far in blocks]),
            )
        _fill(value, b"".join(data))
        return value

    def store(self, pointer: Pointer, value: Value, strides: Strides) -> None:
        """DMA from TCM to memory."""
        if not value.nbytes:
            return
        data, done = value.tobytes(), 0
        writes: list[tuple[Operand, Operand, bytes]] = []
        for near, far in self._memory.transfers(value.operand, pointer, strides):
            nbytes = nbytes_of(far)
            writes.append((near, far, data[done : done + nbytes]))
            done += nbytes
        self._command(
            self._mmu_ps, lambda: all_of([self._engines.dma.write(*write) for write in writes])
        )

    def math(
        self,
        name: str,
        operands: Sequence[Value | float],
        *,
        axis: int | None = None,
        keep_dims: bool = False,
        dtype: DType | None = None,
        shape: Shape | None = None,
    ) -> Value:
        """One operation of the math engine: fetch the operands, compute, store the result in TCM."""
        result = self._memory.new(
            *infer(name, operands, axis=axis, keep_dims=keep_dims, dtype=dtype, shape=shape)
        )
        arrays = [operand.data if isinstance(operand, Value) else operand for operand in operands]
        known = [array for array in arrays if array is not None]
        if self._chip.data and len(known) == len(arrays):
            result.data = compute(
                name, known, result.dtype, axis=axis, keep_dims=keep_dims, shape=shape
            )
        if result.nbytes:
            inputs = tuple(
                operand.operand if isinstance(operand, Value) else float(operand)
                for operand in operands
            )
            self._command(0, lambda: self._computed(name, inputs, result, axis))
        return result

    def gemm(self, gemm: Gemm) -> PendingResult:
        """Queue a matrix product at the scheduler."""
        for matrix in (gemm.a, gemm.b, gemm.out):
            if isinstance(matrix, Ref):
                # What is not mapped is found here, where the kernel's line is known, and not tile by tile.
                self._memory.translate(matrix.pointer, matrix.shape, matrix.strides)
        result = None if gemm.out is not None else self._memory.new(gemm.shape, gemm.dtype)
        scheduler = self._engines.scheduler
        done = self._command(
            0, lambda: completed(scheduler.submit(gemm, result, self._memory.translate))
        )
        return self._started(
            Operation(self, done, result, None, lambda: scheduler.earliest_end_ps(done))
        )

    def send(self, direction: str, value: Value) -> None:
        """Slot by slot: take a slot of the peer's ring, sleep if there is none, write it."""
        pair, block, data = self._pair(direction), value.operand, value.tobytes()
        if pair.tx_base is None:
            raise self._faults.error(
                f"send to {direction}: the queues {self._queues.name!r} only receive from there"
            )
        if value.nbytes > pair.slot_size and not is_packed(block):
            raise self._faults.error(
                f"send to {direction} of a view with gaps, {value.nbytes:,} bytes: it must fit a slot of {pair.slot_size:,} "
                "bytes; a copy made with tl.cat has no gaps"
            )
        for done in range(0, value.nbytes, pair.slot_size):
            source = part_of(block, done, min(pair.slot_size, value.nbytes - done))
            self._waits = self._waiting("send", direction)
            slot = self._command(0, lambda: self._queues.acquire(direction))
            self._waits = None
            target = Operand(slot, source.shape, source.dtype)
            self._wait(
                self._engines.dma.push,
                source,
                target,
                data[done : done + nbytes_of(source)],
                pair.packet_bytes,
                self._launch.call,
            )
            if self._trace is not None:
                self._trace.sent(pair, target)

    def recv(
        self,
        direction: str | None,
        shape: Shape,
        dtype: DType,
        target: Value | Pointer | None = None,
    ) -> PendingResult:
        """Post a receive: the message goes to scratch, over a value in TCM, or from its slots straight to memory."""
        line = kernel_line()
        waiting = self._waiting("recv", direction, line)
        if direction is not None and self._pair(direction).rx_base is None:
            raise self._faults.error(
                f"recv from {direction}: the queues {self._queues.name!r} only send there"
            )
        if isinstance(target, Pointer):
            result, blocks = (
                None,
                self._memory.translate(target, shape, row_major(shape)) if prod(shape) else [],
            )
        else:
            result = self._memory.new(shape, dtype) if target is None else target
            blocks = [result.operand] if result.nbytes else []
        receive = Receive(direction, dtype, blocks, line, lands=result is not None)
        if result is not None:
            receive.done.then(
                lambda received: _fill(result, received.value) if received.error is None else None
            )
        if blocks:
            self._command(0, lambda: completed(self._receives.post(receive)))
        else:
            receive.done.complete(b"")
        return self._started(
            Operation(self, receive.done, result, waiting, lambda: self._engine.now_ps)
        )

    def scratch(self) -> AbstractContextManager[None]:
        """Give back at the end what was allocated inside."""
        return self._memory.scope()

    def await_end(self, operation: Operation) -> None:
        """Block until an operation that was started is complete."""
        if operation in self._open:
            self._open.remove(operation)
        if not operation.done.done:
            self._waits = operation.waiting
            self._decide_nothing_before(operation.earliest_end_ps())
        self._wait(lambda: operation.done)
        self._waits = None

    def _started(self, operation: Operation) -> Operation:
        self._open.append(operation)
        return operation

    def _decide_nothing_before(self, time_ps: int) -> None:
        """The kernel waits until then at least. A receive under way may send a credit meanwhile, to another SIP perhaps."""
        if not self._receives.outstanding:
            place = self._wiring.coordinates
            self._chip.send_bounds.computing((place.cube, place.pe), time_ps, self._launch.thread)

    def _computed(
        self, name: str, inputs: tuple[Operand | float, ...], result: Value, axis: int | None
    ) -> Completion[None]:
        done = Completion[None]()
        end_ps = self._engines.math.run(name, inputs, result.operand, result.tobytes(), axis)
        self._decide_nothing_before(end_ps)
        self._engine.at(end_ps, done.complete, None)
        return done

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

    def _pair(self, direction: str) -> QueuePair:
        known = self._queues.directions
        if direction not in known:
            raise self._faults.error(
                f"no queue in direction {direction!r} is installed here{nearest(direction, known)}"
            )
        return self._queues.pair(direction)

    def _waiting(self, operation: str, direction: str | None, line: str = "") -> BlockedPe:
        if direction is None and not self._queues.receiving:
            raise self._faults.error("recv from any direction: no queue is installed here")
        peer = None if direction is None else self._pair(direction).peer
        self._check_unused(operation, direction)
        now_ps, launch = self._engine.now_ps, self._launch
        return BlockedPe(
            *self._wiring.coordinates,
            launch.name,
            operation,
            direction or "any",
            peer,
            now_ps,
            line,
            launch.call,
        )

    def _check_unused(self, operation: str, direction: str | None) -> None:
        queues = self._queues
        if queues.user and self._launch.thread == "kernels":
            way, called = (
                direction or "from any direction",
                "which was called with async_op=True: wait() for it first",
            )
            raise self._faults.error(
                f"{operation} {way}: the queues {queues.name!r} are in use by {queues.user}, {called}"
            )

    def _check_axis(self, axis: int) -> None:
        if axis not in (0, 1):
            raise self._faults.error(
                f"axis {axis}: programs have axis 0 (PE in its cube) and axis 1 (cube)"
            )


def start_kernel(pe: Pe, launch: PeLaunch) -> RunningKernel:
    """Start a kernel on a PE now; returns when it first waits or has ended."""
    run = KernelRun(pe, launch)
    context = copy_context()
    context.run(current_pe.set, run)
    run.program = program = Program(run.execute, context)
    program.start()
    return RunningKernel(program.finished, run.blocked, run.close)


def _fill(value: Value, data: bytes) -> None:
    """Give a value its elements. Views of it share them, so what it has is overwritten in place."""
    if len(data) != value.nbytes:
        return
    array = Value.from_bytes(memoryview(bytearray(data)), value.shape, value.dtype).data
    if value.data is None or array is None:
        value.data = array
    else:
        value.data[...] = array
