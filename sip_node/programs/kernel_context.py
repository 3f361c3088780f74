"""The calls of `tl` while a kernel runs on a simulated PE: each becomes commands for engines.

A kernel is a function of the user in a greenlet of its own (`Program`). The parts around it:

    tl  -->  PeKernelContext   what a kernel may call; computes the data
                 |-- CommandIssuer      the overhead of PE_CPU, scheduler and MMU; sleeps
                 |-- KernelMemory       scratch in TCM, virtual addresses
                 |-- Sends, Receives    messages, slot by slot
                 |-- Operations         matrix products and receives that run beside the kernel
                 '-- KernelWait         the peer or the time that the kernel waits for

The values are computed here, at the time of the call, and the engines simulate how long that takes:
data is eager, time is modelled. A method blocks the kernel's greenlet until its effect is complete;
`gemm` and `recv` return a pending operation instead.
"""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import NoReturn

import numpy as np

from runtime.core.dtypes import DType
from runtime.core.launch_numbers import number_of_record
from runtime.core.program_grid import DealtPrograms, GridPoint, program_text
from runtime.core.simtime import format_ps, ps_from_ns
from runtime.core.trace import Operand
from runtime.language.chain import ChainCall, VectorRegisters
from runtime.language.chains.call_texts import chain_text, math_text
from runtime.language.context import PendingResult
from runtime.language.gemm import Gemm
from runtime.language.inference import MathCall
from runtime.language.memory_in_flight import UsedBlock
from runtime.language.running import NO_OPTIONS, MathOptions, current_pe
from runtime.language.value import Array, Pointer, Ref, Shape, Value
from runtime.model.tiles import TileSize
from runtime.wire.reports import BlockedPe, DevicePrint
from sip_node.chip.completion import Completion, completed
from sip_node.chip.kernel import PeLaunch
from sip_node.chip.pe.pe import Pe
from sip_node.programs.kernel_calls import end_call, end_call_with
from sip_node.programs.kernel_faults import call_once
from sip_node.programs.kernel_memory import fill
from sip_node.programs.kernel_messages import KernelMessages
from sip_node.programs.kernel_operation import Operation
from sip_node.programs.program import AnyProgram, Program, Steps
from sip_node.programs.program_stacks import ProgramStacks
from sip_node.programs.program_steps import ProgramOrigin, ProgramSteps


class KernelCommands(KernelMessages):
    """The commands of one kernel on one PE, which runs as `program`."""

    def __init__(self, pe: Pe, launch: PeLaunch, program: AnyProgram) -> None:
        super().__init__(pe, launch, program)
        self.finished: Completion[object] = program.finished
        """Completes when the kernel and all that it started have ended."""

    def _begin_steps(self) -> ProgramSteps | None:
        """Record the kernel and its steps from now on, in a run with records."""
        chip, (_, cube, pe), launch = self._pe.chip, self._pe.coordinates, self._launch
        if chip.log.recorder is not None:
            thread, line = launch.thread, launch.line
            origin = ProgramOrigin(launch.name, thread, cube, pe, launch.command, line)
            self._steps = ProgramSteps(chip.engine, chip.log, origin)
        return self._steps

    def _beginning_program(self, program: GridPoint) -> Steps[None]:
        """Begin a program of a grid."""
        self._faults.program = program
        self._memory.begin_program()
        recorded = self._begun_call(f"program {program}", ())
        if recorded is not None:
            recorded.ended()
        begin_ps = ps_from_ns(self._pe.chip.topology.pe.cpu.program_ns)
        return self._issuer.sleeping("program", begin_ps)

    def _ending_program(self) -> Steps[None]:
        """Wait for all that a program of a grid has started, and release its scratch."""
        yield from self._operations.awaiting_all()
        self._memory.release()

    def blocked(self) -> BlockedPe | None:
        """The wait of the kernel for a peer, if there is one."""
        return self._wait.blocked(self._faults.line) if self._has_parts else None

    @property
    def waits_since_ps(self) -> int | None:
        """The begin of the wait of the kernel for a peer, if there is one."""
        return self._wait.since_ps if self._has_parts else None

    def close(self) -> None:
        """The kernel has ended: release what it holds of the PE."""
        if self._has_messages:
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

    @property
    def free_scratch_bytes(self) -> int:
        """Bytes of the scratch that are not in use."""
        return self._memory.free_bytes

    def locate(self, line: str) -> None:
        """Take `line` as the source line of all commands from now on."""
        self._issuer.line = self._faults.line = line

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

    def math(
        self,
        name: str,
        operands: Sequence[Value | float],
        options: MathOptions = NO_OPTIONS,
        out: Value | None = None,
    ) -> Value:
        """Run an operation of the math engine: fetch the operands, compute, store the result."""
        call = MathCall.checked(name, operands, options, out)
        return self._issuer.block(self.computing(call))

    def computing(self, call: MathCall) -> Steps[Value]:
        """The steps of `math`, once the operation is known to be defined."""
        name, operands = call.name, call.operands
        yield from self._operations.awaiting_writers(operands)
        result = yield from self._target(call.out, call.whole, call.dtype)
        if self._pe.chip.data:
            data = call.elements()
            if data is not None:
                result.fill(data)
        if result.nbytes:
            inputs = tuple(
                operand.operand if isinstance(operand, Value) else number_of_record(operand)
                for operand in operands
            )
            calls = self._calls
            recorded = (
                None if calls is None else calls.begin(math_text(name, operands), (), operands)
            )
            yield from self._issuer.issuing(
                f"math {name}", self._computed, name, inputs, result, call.options.axis
            )
            end_call(recorded, result)
        return result

    def settle(self, value: Value) -> None:
        """Wait for the operations in flight that write over a value."""
        self._issuer.block(self.settling(value))

    def settling(self, value: Value) -> Steps[None]:
        """The steps of `settle`."""
        return self._operations.awaiting_writers((value,))

    def elements_of(self, value: Value) -> Array | None:
        """The elements of a value."""
        return value.data

    def ending(self, operation: Operation) -> Steps[None]:
        """Wait until an operation is complete."""
        return self._operations.awaiting_end(operation)

    def run_chain(self, call: ChainCall) -> Operation:
        """Queue a chain at the math engine."""
        return self._issuer.block(self.queueing(call))

    def queueing(self, call: ChainCall) -> Steps[Operation]:
        """The steps of `run_chain`."""
        chain, values, chains = call.chain, call.values, self._pe.math.chains
        results = list[Value]()
        for out, value in zip(call.outs, values, strict=True):
            results.append((yield from self._target(out, value.shape, value.dtype)))
        # Without elements there is no command, and no time.
        run = chains.prepared(chain, results) if chain.plan.width else None
        for result, value in zip(results, values, strict=True):
            if value.data is not None:
                # A copy: the value may be a view of another result.
                result.fill(np.array(value.data, order="C"))
        returned, over = call.returned(results), [out for out in call.outs if out is not None]
        if run is None:
            return Operation(self._operations, completed(None), returned, over=over)
        calls = self._calls
        recorded = None if calls is None else calls.begin(chain_text(chain), (), chain.sources)
        yield from self._issuer.issuing("chain", lambda: completed(chains.queue(run)))
        end_call_with(recorded, run.done, *results)
        return Operation(
            self._operations,
            run.done,
            returned,
            reads=chain.sources,
            over=over,
            earliest_end_ps=lambda: chains.earliest_end_ps(run),
            call=recorded,
        )

    def gemm(self, gemm: Gemm) -> PendingResult:
        """Queue a matrix product at the scheduler."""
        return self._issuer.block(self.submitting(gemm))

    def submitting(self, gemm: Gemm) -> Steps[Operation]:
        """The steps of `gemm`."""
        reads = [each for each in (gemm.a, gemm.b, gemm.acc, gemm.bias) if isinstance(each, Value)]
        yield from self._operations.awaiting_writers(reads)
        use = self._checked_use(
            "tl.composite",
            [UsedBlock.of(each) for each in (gemm.a, gemm.b) if isinstance(each, Ref)],
            [] if gemm.out is None else [UsedBlock.of(gemm.out)],
        )
        read, written, store = list[Operand](), list[Operand](), None
        for matrix in (gemm.a, gemm.b, gemm.out):
            if isinstance(matrix, Ref):
                # A page fault belongs to this line of the kernel. The scheduler translates tile by
                # tile later, where no line is known.
                blocks = self._memory.translate(matrix.pointer, matrix.shape, matrix.strides)
                if matrix is gemm.out:
                    store = self._memory.check_store(matrix.pointer, blocks, in_flight=True)
                (written if matrix is gemm.out else read).extend(blocks)
        result = None
        if gemm.out is None:
            result = yield from self._target(gemm.over, gemm.shape, gemm.dtype)
        scheduler = self._pe.scheduler
        recorded = self._begun_call("composite", read, reads)
        done = yield from self._issuer.issuing(
            "composite", lambda: completed(scheduler.submit(gemm, result, self._memory.translate))
        )
        if recorded is not None:
            recorded.writes(written)
            end_call_with(recorded, done, *(() if result is None else (result,)))
        return Operation(
            self._operations,
            done,
            result,
            reads=reads,
            over=() if gemm.over is None else (gemm.over,),
            memory=use,
            # A product that is complete, and no longer in flight, bounds nothing.
            earliest_end_ps=lambda: 0 if done.done else scheduler.earliest_end_ps(done),
            call=recorded,
            store=store,
        )

    def empty(self, shape: Shape, dtype: DType) -> Value:
        """Scratch for a value; its elements read as zero."""
        value = self._memory.new(shape, dtype)
        fill(value, bytes(value.nbytes) if self._pe.chip.data else b"")
        if self._calls is not None and value.nbytes:
            self._calls.made(value)
        return value

    @property
    def scratch_begin(self) -> int:
        """The address of the scratch."""
        return self._memory.begin

    def placed(self, shape: Shape, dtype: DType, address: int, *, is_zero: bool) -> Value:
        """A value at an address of the scratch."""
        value = Value(shape, dtype, None, address)
        if is_zero and self._pe.chip.data:
            value.data = np.zeros(shape, dtype.numpy)
        return value

    def ended(self, values: Sequence[Value]) -> None:
        """Nothing to do: its owner leaves a value."""

    def address_of(self, pointer: Pointer) -> int:
        """The address of a pointer."""
        return pointer.address

    def run_again(self, effect: str) -> None:
        """Nothing to do: the function of the kernel runs."""

    def device_print(self, text: str) -> None:
        """Report a line, in no time."""
        (sip, cube, pe), log = self._pe.coordinates, self._pe.chip.log
        if log.printed is not None:
            kernel = f"kernel {self._launch.name!r}{program_text(self._ids.program)}"
            now_ps = self._pe.chip.engine.now_ps
            log.printed(
                DevicePrint(time_ps=now_ps, sip=sip, cube=cube, pe=pe, kernel=kernel, text=text)
            )

    def fail_assertion(self, problem: str) -> NoReturn:
        """Raise the error, with the time."""
        raise self._faults.error(f"{problem}, at {format_ps(self._pe.chip.engine.now_ps)}")

    @contextmanager
    def scratch(self) -> Generator[None]:
        """A scope: release at its end what was allocated inside."""
        begin = self.scratch_end
        yield
        self._issuer.block(self.ending_scratch(begin))

    @property
    def scratch_end(self) -> int:
        """The address behind the scratch in use."""
        return self._memory.end

    def ending_scratch(self, begin: int) -> Steps[None]:
        """The steps at the end of a scope whose values begin at an address."""
        yield from self._operations.awaiting_users_from(begin)
        self._memory.release_from(begin)

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


class PeKernelContext(KernelCommands):
    """The `KernelContext` of one kernel on one PE, whose function runs in a greenlet."""

    def __init__(self, pe: Pe, launch: PeLaunch, stacks: ProgramStacks) -> None:
        super().__init__(pe, launch, Program(self._execute, stacks))

    def _execute(self) -> None:
        """Run the kernel to the end of everything that it started."""
        steps = self._begin_steps()
        if steps is None:
            self._run()
            return
        with steps:
            self._run()

    def _run(self) -> None:
        launch = self._launch
        current_pe.set(self)
        if launch.call:
            # Also of a kernel that uses none of its queues: see `KernelQueues`.
            self._make_messages()
        if launch.programs is None:
            call_once(launch, self._pe.coordinates, None)
            if self._has_parts:
                self._issuer.block(self._operations.awaiting_all())
        else:
            self._run_each(launch.programs)

    def _run_each(self, programs: DealtPrograms) -> None:
        """Run the programs of a grid, each to the end of everything that it started."""
        for program in programs:
            self._ids.program = program
            self._issuer.block(self._beginning_program(program))
            call_once(self._launch, self._pe.coordinates, program)
            self._issuer.block(self._ending_program())
