"""What `tl` calls while a kernel runs on a simulated PE: every method becomes commands for engines.

The values are computed here, at the time of the call, and the engines simulate how long that takes:
data is eager, time is modelled. A method blocks the kernel's greenlet until its effect is complete;
`gemm` and `recv` return a pending operation instead.
"""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import NoReturn

from runtime.core.dtypes import DType
from runtime.core.program_grid import DealtPrograms
from runtime.core.simtime import format_ps, ps_from_ns
from runtime.core.trace import Operand
from runtime.language.chain import ChainCall, VectorRegisters
from runtime.language.context import PendingResult, current_pe
from runtime.language.evaluation import result_elements
from runtime.language.gemm import Gemm
from runtime.language.inference import check_over, infer
from runtime.language.memory_in_flight import UsedBlock
from runtime.language.rows import RowList
from runtime.language.shapes import checked_out
from runtime.language.value import Pointer, Ref, Shape, Strides, Value
from runtime.model.tiles import TileSize
from runtime.wire.reports import BlockedPe
from sip_node.chip.completion import Completion, completed
from sip_node.chip.kernel import PeLaunch
from sip_node.chip.pe.pe import Pe
from sip_node.programs.kernel_barrier import await_all_pes
from sip_node.programs.kernel_call import call_once
from sip_node.programs.kernel_chains import start_chain
from sip_node.programs.kernel_operation import Operation
from sip_node.programs.kernel_parts import KernelParts
from sip_node.programs.kernel_prints import report_line
from sip_node.programs.kernel_transfers import fill
from sip_node.programs.program import Program
from sip_node.programs.program_stacks import ProgramStacks
from sip_node.programs.program_steps import ProgramOrigin, ProgramSteps


class PeKernelContext(KernelParts):
    """The `KernelContext` of one kernel on one PE."""

    def __init__(self, pe: Pe, launch: PeLaunch, stacks: ProgramStacks) -> None:
        super().__init__(pe, launch, Program(self._execute, stacks))
        self.finished: Completion[object] = self.program.finished
        """Completes when the kernel and all that it started have ended."""

    def _execute(self) -> None:
        """Run the kernel to the end of everything that it started."""
        chip, (_, cube, pe), launch = self._pe.chip, self._pe.coordinates, self._launch
        if chip.log.recorder is None:
            self._run()
            return
        origin = ProgramOrigin(launch.name, launch.thread, cube, pe, launch.command, launch.line)
        self._steps = ProgramSteps(chip.engine, chip.log, origin)
        with self._steps:
            self._run()

    def _run(self) -> None:
        launch = self._launch
        current_pe.set(self)
        if launch.call:
            # Also of a kernel that uses none of its queues: see `KernelQueues`.
            self._make_parts()
        if launch.programs is None:
            call_once(launch, self._pe.coordinates, None)
            if self._has_parts:
                self._operations.await_all()
        else:
            self._run_each(launch.programs)

    def _run_each(self, programs: DealtPrograms) -> None:
        """Run the programs of a grid, each to the end of everything that it started."""
        begin_ps = ps_from_ns(self._pe.chip.topology.pe.cpu.program_ns)
        for program in programs:
            self._ids.program = self._faults.program = program
            self._issuer.sleep("program", begin_ps)
            call_once(self._launch, self._pe.coordinates, program)
            self._operations.await_all()
            self._memory.release()

    def blocked(self) -> BlockedPe | None:
        """The wait of the kernel for a peer, if there is one."""
        return self._wait.blocked() if self._has_parts else None

    @property
    def waits_since_ps(self) -> int | None:
        """The begin of the wait of the kernel for a peer, if there is one."""
        return self._wait.since_ps if self._has_parts else None

    def close(self) -> None:
        """The kernel has ended: release what it holds of the PE."""
        if self._has_parts:
            self._receives.close()

    @property
    def gemm_tile(self) -> TileSize:
        """The largest tile of the GEMM engine."""
        return self._pe.chip.topology.tile

    @property
    def vector_registers(self) -> VectorRegisters:
        """The registers of the vector engine."""
        chip, math = self._pe.chip, self._pe.chip.topology.pe.math
        address = chip.addresses.pe_vectors_addr(*self._pe.coordinates, 0)
        return VectorRegisters(math.registers, math.lanes, address)

    @property
    def has_data(self) -> bool:
        """Whether values have elements."""
        return self._pe.chip.data

    def program_id(self, axis: int) -> int:
        """PE in its cube (axis 0) or cube in its SIP (axis 1); of a grid, the id on an axis."""
        # Inline, since this is all that many a short kernel calls.
        if self._launch.programs is None and axis in (0, 1):
            return self._pe.coordinates.pe if axis == 0 else self._pe.coordinates.cube
        return self._ids.program_id(axis)

    def num_programs(self, axis: int) -> int:
        """PEs of this cube (axis 0) or cubes (axis 1) that run this launch, or those of a grid."""
        if self._launch.programs is None and axis in (0, 1):
            return self._launch.pes if axis == 0 else self._launch.cubes
        return self._ids.num_programs(axis)

    def load(
        self, pointer: Pointer, shape: Shape, strides: Strides, out: Value | None = None
    ) -> Value:
        """DMA from memory to TCM."""
        value = self._target(out, shape, pointer.dtype)
        return self._transfers.load(pointer, shape, strides, value)

    def load_async(
        self, pointer: Pointer, shape: Shape, strides: Strides, out: Value | None = None
    ) -> Operation:
        """DMA from memory to TCM, beside the kernel."""
        value = self._target(out, shape, pointer.dtype)
        return self._transfers.load_async(pointer, shape, strides, value, over=out is not None)

    def gather(
        self,
        pointer: Pointer,
        rows: RowList,
        shape: Shape,
        strides: Strides,
        out: Value | None = None,
    ) -> Value:
        """DMA of the rows that a list names."""
        value = self._target(out, (len(rows), *shape), pointer.dtype)
        return self._transfers.gather(pointer, rows, strides, value)

    def gather_async(
        self,
        pointer: Pointer,
        rows: RowList,
        shape: Shape,
        strides: Strides,
        out: Value | None = None,
    ) -> Operation:
        """DMA of the rows that a list names, beside the kernel."""
        value = self._target(out, (len(rows), *shape), pointer.dtype)
        return self._transfers.gather_async(pointer, rows, strides, value, over=out is not None)

    def store(self, pointer: Pointer, value: Value, strides: Strides) -> None:
        """DMA from TCM to memory."""
        self._transfers.store(pointer, value, strides)

    def store_async(self, pointer: Pointer, value: Value, strides: Strides) -> Operation:
        """DMA from TCM to memory, beside the kernel."""
        return self._transfers.store_async(pointer, value, strides)

    def math(
        self,
        name: str,
        operands: Sequence[Value | float],
        *,
        axis: int | None = None,
        keep_dims: bool = False,
        dtype: DType | None = None,
        shape: Shape | None = None,
        out: Value | None = None,
    ) -> Value:
        """One operation of the math engine: fetch the operands, compute, store the result."""
        whole = infer(name, operands, axis=axis, keep_dims=keep_dims, dtype=dtype, shape=shape)
        if out is not None:
            check_over(name, operands, checked_out(out, *whole, name))
        self._operations.await_writers(operands)
        result = self._target(out, *whole)
        if self._pe.chip.data:
            data = result_elements(
                name, operands, result.dtype, axis=axis, keep_dims=keep_dims, shape=shape
            )
            if data is not None:
                result.fill(data)
        if result.nbytes:
            inputs = tuple(
                operand.operand if isinstance(operand, Value) else float(operand)
                for operand in operands
            )
            self._issuer.issue(f"math {name}", self._computed, name, inputs, result, axis)
        return result

    def settle(self, value: Value) -> None:
        """Wait for the operations in flight that write over a value."""
        self._operations.await_writers((value,))

    def run_chain(self, call: ChainCall) -> Operation:
        """Queue a chain at the math engine."""
        values = call.values
        results = [
            self._target(out, value.shape, value.dtype)
            for out, value in zip(call.outs, values, strict=True)
        ]
        return start_chain(call, results, self._pe.math.chains, self._issuer, self._operations)

    def gemm(self, gemm: Gemm) -> PendingResult:
        """Queue a matrix product at the scheduler."""
        reads = [each for each in (gemm.a, gemm.b, gemm.acc, gemm.bias) if isinstance(each, Value)]
        self._operations.await_writers(reads)
        use = self._transfers.checked_use(
            "tl.composite",
            [UsedBlock.of(each) for each in (gemm.a, gemm.b) if isinstance(each, Ref)],
            [] if gemm.out is None else [UsedBlock.of(gemm.out)],
        )
        for matrix in (gemm.a, gemm.b, gemm.out):
            if isinstance(matrix, Ref):
                # A page fault belongs to this line of the kernel. The scheduler translates tile by
                # tile later, where no line is known.
                blocks = self._memory.translate(matrix.pointer, matrix.shape, matrix.strides)
                if matrix is gemm.out:
                    self._memory.check_store(matrix.pointer, blocks)
        result = None
        if gemm.out is None:
            result = self._target(gemm.over, gemm.shape, gemm.dtype)
        scheduler = self._pe.scheduler
        done = self._issuer.issue(
            "composite", lambda: completed(scheduler.submit(gemm, result, self._memory.translate))
        )
        return self._operations.started(
            done,
            result,
            reads=reads,
            over=() if gemm.over is None else (gemm.over,),
            memory=use,
            # A product that is complete, and no longer in flight, bounds nothing.
            earliest_end_ps=lambda: 0 if done.done else scheduler.earliest_end_ps(done),
        )

    def send(self, direction: str, value: Value) -> None:
        """Write a value to the peer's ring, slot by slot; sleep while the ring is full."""
        self._messages.send(direction, value)

    def send_async(self, direction: str, value: Value) -> PendingResult:
        """The same in the background."""
        return self._messages.send_async(direction, value)

    def recv(
        self,
        direction: str | None,
        shape: Shape,
        dtype: DType,
        target: Value | Pointer | None = None,
        *,
        in_place: bool = False,
    ) -> PendingResult:
        """Post a receive to scratch, over a value in TCM, or from the slots straight to memory; in
        place: leave the message in its slots.
        """
        if isinstance(target, Pointer):
            return self._messages.recv_to_memory(direction, shape, dtype, target)
        value = self._target(target, shape, dtype)
        over = () if target is None else (target,)
        return self._messages.recv(direction, dtype, value, over, in_place=in_place)

    def release(self, value: Value) -> None:
        """Return the slots of a value that was received in place."""
        self._messages.release(value)

    def empty(self, shape: Shape, dtype: DType) -> Value:
        """Scratch for a value; its elements read as zero."""
        value = self._memory.new(shape, dtype)
        fill(value, bytes(value.nbytes) if self._pe.chip.data else b"")
        return value

    def barrier(self) -> None:
        """Wait for all PEs of the launch."""
        parts = self._issuer, self._wait, self._operations, self._faults
        await_all_pes(self._pe, self._launch, *parts)

    def device_print(self, text: str) -> None:
        """Report a line, in no time."""
        report_line(self._pe, self._launch.name, self._ids.program, text)

    def fail_assertion(self, problem: str) -> NoReturn:
        """Raise the error, with the time."""
        raise self._faults.error(f"{problem}, at {format_ps(self._pe.chip.engine.now_ps)}")

    @contextmanager
    def scratch(self) -> Generator[None]:
        """A scope: release at its end what was allocated inside."""
        with self._memory.scope() as start:
            yield
            self._operations.await_users_from(start)

    def _target(self, out: Value | None, shape: Shape, dtype: DType) -> Value:
        """The value that a result is written to: new, or `out` when no operation uses it."""
        self._operations.await_users(out)
        return self._memory.new(shape, dtype) if out is None else out

    def _computed(
        self, name: str, inputs: tuple[Operand | float, ...], result: Value, axis: int | None
    ) -> Completion[None]:
        done: Completion[None] = Completion()
        earliest_ps = self._pe.math.run(
            name, inputs, result.operand, result.tobytes(), lambda: done.complete(None), axis
        )
        # The stages of the vector engine are calendars, so the least time is known at the start.
        self._wait.until(lambda: earliest_ps)
        return done
