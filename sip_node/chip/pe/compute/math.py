"""The vector engine of a PE: the arithmetic of kernels, and the epilogues of matrix products.

An operation of a kernel is a stream of vectors through three stages: the fetch port brings the
elements of the operands to registers, the engine computes, the store port returns the result. The
stages work on successive vectors at the same time:

    fetch port    | 1 | 2 | 3 | 4 |
    engine            | fill | 1 | 2 | 3 | 4 |
    store port                   | 1 | 2 | 3 | 4 |

The engine takes vector k at the later of two times: when it has finished k - 1, and when the last
byte of k is in registers. So the time from the fetch to the last byte of the result is that of the
longest path through the table: fetch up to some vector j, compute from j to some k, store from k to
the last (a max-plus product). Where the vectors are of equal size, the longest path has j and k at
an end of the stream; an operand that ends before others adds the vectors where it does.

Each port and the engine serve one operation after the other, in the order of arrival. A port
reserves the time of all bytes of an operation at once: the operands when it begins, the result when
the first vector is computed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import NamedTuple
from zlib import crc32

from runtime.core.dtypes import DType
from runtime.core.run_tables import Cause
from runtime.core.trace import Operand
from runtime.language.chains.passes import Pass, passes
from runtime.language.operations import compute
from runtime.language.value import Array
from sip_node.chip.pe.compute.fetch_store import PeFetchStore
from sip_node.chip.pe.compute.operand_tiles import checksum_of
from sip_node.chip.pe.compute.tile_buffers import RegisterFile
from sip_node.chip.pe.compute.tile_token import TileToken
from sip_node.chip.pe.compute.vector_chains import VectorChains
from sip_node.chip.pe.compute.vector_stream import Clock, StreamPaths, VectorStream, vector_record
from sip_node.chip.pe.compute.vector_times import EngineCycles, PassTimes, pass_times
from sip_node.chip.pe.context import PeContext


class VectorPlan(NamedTuple):
    """The plan of operations of one name on blocks of the same shapes and types: the bytes at the
    ports, the times of the passes, and the least time of all passes but the first.
    """

    fetched_bytes: int
    stored_bytes: int
    passes: tuple[PassTimes, ...]
    later_ps: int


@dataclass(slots=True)
class VectorOperation:
    """An operation of a kernel in flight; `begun` of the passes of its plan have begun.

    `waited` is whether the engine, or the port to it, had earlier work when it was requested. In a
    run with records, a call in `step` has issued it.
    """

    name: str
    inputs: Sequence[Operand | float]
    result: Operand
    data: bytes
    axis: int | None
    done: Callable[[], None]
    plan: VectorPlan
    step: int
    begun: int = 0
    start_ps: int = 0
    requested_ps: int = 0
    waited: bool = False


_Block = tuple[tuple[int, ...], str]


class PeMath:
    """Takes a vector of `lanes` elements every few cycles, `pe.math.cycles` of its function.

    An epilogue works in place on an accumulator, so it moves no data.
    """

    def __init__(
        self, context: PeContext, fetch_store: PeFetchStore, registers: RegisterFile
    ) -> None:
        math = context.topology.pe.math
        self._context, self._engine, self._registers = context, context.engine, registers
        self._fetch, self._store = fetch_store.ports
        self._lanes, self._pipeline_cycles = math.lanes, math.pipeline_cycles
        # A tree over n lanes has ceil(log2(n)) levels.
        self._tree_cycles = math.tree_level_cycles * (math.lanes - 1).bit_length()
        self._cycles: dict[str, int] = math.cycles.values()
        self._clock = Clock(math.clock_ghz)
        self._paths = StreamPaths(self._fetch, self._clock, self._store)
        # A kernel repeats its operations on blocks of a few sizes.
        self._plans: dict[tuple[str, tuple[_Block, ...], _Block, int], VectorPlan] = {}
        self.free_ps = 0
        self.busy_ps = 0
        self.records = 0
        cycles = EngineCycles(
            lanes=self._lanes,
            fill=self._pipeline_cycles,
            tree=self._tree_cycles,
            of=self._cycles_of_operation,
        )
        self.chains = VectorChains(context, self, fetch_store, self._paths, cycles)

    def cycles(self, step: Pass, vectors: int) -> int:
        """Cycles of a pass over `vectors` vectors that are in registers.

        Fill of the pipeline + vectors x cycles of the functions, and for a reduction the tree and
        the functions after it, for one vector of what it returns. In a scan, every vector passes
        the levels of the tree.
        """
        # A scan adds lane by lane in log2 steps (Hillis and Steele 1986), and each vector needs the
        # last sum of the vector before it, so the levels of two vectors do not overlap.
        levels = self._tree_cycles if step.scans else 0
        cycles = self._pipeline_cycles + vectors * (self._cycles_of(step.functions) + levels)
        if step.reduces:
            cycles += self._tree_cycles + self._cycles_of(step.after)
        return cycles

    def run(
        self,
        name: str,
        inputs: Sequence[Operand | float],
        result: Operand,
        data: bytes,
        done: Callable[[], None],
        axis: int | None = None,
    ) -> int:
        """Begin an operation and call `done` when its result is in TCM; returns the earliest end.

        Operands and result are blocks in TCM; `data` are the elements of the result, in row-major
        order.
        """
        operation = VectorOperation(
            name=name,
            inputs=inputs,
            result=result,
            data=data,
            axis=axis,
            done=done,
            plan=self._plan(name, inputs, result, axis),
            step=self._context.log.step,
        )
        self.records += 1
        # Without the waits of later passes, so that the promise holds.
        return self._begin(operation) + operation.plan.later_ps

    def _plan(
        self, name: str, inputs: Sequence[Operand | float], result: Operand, axis: int | None
    ) -> VectorPlan:
        blocks = [each for each in inputs if isinstance(each, Operand)]
        shapes = tuple([(block.shape, block.dtype) for block in blocks])
        # A softmax takes a reciprocal for each row. Reductions along any axis take equal times.
        rows = _rows(result.shape, axis) if name == "softmax" else 1
        key = name, shapes, (result.shape, result.dtype), rows
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plans[key] = self._new_plan(name, blocks, result, rows)
        return plan

    def _new_plan(
        self, name: str, blocks: Sequence[Operand], result: Operand, rows: int
    ) -> VectorPlan:
        vectors = VectorStream.joined if name == "cat" else VectorStream
        stream = vectors(blocks, result, self._lanes)
        first, *later = passes(name)
        # Of the results of a reduction, `cycles` has the first vector.
        later_results = stream.vectors(rows) - 1
        return VectorPlan(
            fetched_bytes=stream.fetched_bytes,
            stored_bytes=stream.stored_bytes,
            passes=tuple(
                pass_times(
                    step, stream, self._paths, partial(self._cycles_of_pass, step, later_results)
                )
                for step in (first, *later)
            ),
            later_ps=sum(
                self._clock.ps(self._cycles_of_pass(step, later_results, stream.count))
                for step in later
            ),
        )

    def _cycles_of_pass(self, step: Pass, later_results: int, vectors: int) -> int:
        return self.cycles(step, vectors) + later_results * self._cycles_of(step.after)

    def _begin(self, operation: VectorOperation) -> int:
        """Begin the next pass; returns its earliest end, with the result in TCM after the last."""
        plan = operation.plan
        times, free_ps = plan.passes[operation.begun], self.free_ps
        fetch_ps = now_ps = self._engine.now_ps
        if plan.fetched_bytes:
            # All bytes in one piece: the ports serve the requests of other engines between
            # operations only.
            fetch_ps, _ = self._fetch.reserve(now_ps, now_ps, plan.fetched_bytes)
        # Vector 1 enters the engine when it is in registers and the engine is free.
        start_ps = times.start.end_ps(free_ps, fetch_ps)
        if not operation.begun:
            operation.start_ps, operation.requested_ps = start_ps, now_ps
            operation.waited = max(free_ps, fetch_ps) > now_ps
        operation.begun += 1
        self.free_ps = times.computed.end_ps(free_ps, fetch_ps)
        self.busy_ps += self.free_ps - start_ps
        if operation.begun < len(plan.passes):
            # A later pass needs the result of the reduction before it, so it fetches only then.
            self._engine.at(self.free_ps, self._go_on, operation)
            return self.free_ps
        first_ps = times.first.end_ps(free_ps, fetch_ps)
        end_ps = times.stored.end_ps(free_ps, fetch_ps)
        self._engine.at(first_ps, self._store_result, operation, end_ps)
        return end_ps

    def _go_on(self, operation: VectorOperation) -> None:
        self._begin(operation)

    def _store_result(self, operation: VectorOperation, end_ps: int) -> None:
        """Reserve the store port for all of the result; `end_ps` is the end if it is free."""
        # Not when the operation begins: the first result may be far away, and what other engines
        # store before it would wait.
        now_ps = self._engine.now_ps
        start_ps, stored_ps = self._store.reserve(now_ps, now_ps, operation.plan.stored_bytes)
        if start_ps > now_ps:
            end_ps = max(stored_ps, end_ps)
        self._engine.at(end_ps, self._end, operation)

    def _end(self, operation: VectorOperation) -> None:
        self._context.tcm.write(operation.result, operation.data)
        self._context.record(
            vector_record(
                self._context.coordinates,
                operation.name,
                (operation.start_ps, self._engine.now_ps),
                operation.inputs,
                operation.result,
                crc32(operation.data),
                axis=operation.axis,
            ),
            operation.requested_ps,
            Cause.ENGINE if operation.waited else Cause.NONE,
            step=operation.step,
        )
        operation.done()

    def _cycles_of_operation(self, name: str) -> int:
        (step,) = passes(name)
        return self._cycles_of(step.functions)

    def _cycles_of(self, functions: Sequence[str]) -> int:
        return sum(self._cycles[function] for function in functions)

    def accept(self, token: TileToken) -> None:
        """Take a token whose accumulator is complete: add the bias, apply the activation."""
        output, gemm = token.output, token.gemm
        # In the type of the accumulator: the result is rounded once, when it is stored.
        sums = gemm.accumulator
        accumulator = output.registers(sums.name)
        if output.bias is not None:
            bias = output.bias
            inputs = (
                accumulator,
                Operand(self._registers.bias(output.bias_row), bias.shape, bias.element),
            )
            output.data = _epilogue_elements("add", (output.data, bias.data), sums)
            self._epilogue("add", inputs, accumulator, output.data, token.step)
        if gemm.activation is not None:
            output.data = _epilogue_elements(gemm.activation, (output.data,), sums)
            self._epilogue(gemm.activation, (accumulator,), accumulator, output.data, token.step)
        # After the last epilogue of this token: `free_ps` is its end.
        self._engine.at(self.free_ps, self._pass_on, token)

    def _pass_on(self, token: TileToken) -> None:
        if token.output.bias is not None:
            self._registers.biases.free(token.output.bias_row)
        token.advance()

    def _epilogue(
        self,
        name: str,
        inputs: tuple[Operand, ...],
        result: Operand,
        data: Array | None,
        step: int,
    ) -> None:
        (only,) = passes(name)
        vectors = -(-prod(result.shape) // self._lanes)
        now_ps = self._engine.now_ps
        start_ps = max(now_ps, self.free_ps)
        self.free_ps = start_ps + self._clock.ps(self.cycles(only, vectors))
        self.busy_ps += self.free_ps - start_ps
        self.records += 1
        pe, span_ps = self._context.coordinates, (start_ps, self.free_ps)
        record = vector_record(pe, name, span_ps, inputs, result, checksum_of(data))
        self._engine.at(
            self.free_ps, self._context.record, record, now_ps, Cause.ENGINE, None, step
        )


def _rows(shape: Sequence[int], axis: int | None) -> int:
    """The rows of a block along `axis`, by default its last one."""
    return prod(shape) // shape[-1 if axis is None else axis]


def _epilogue_elements(name: str, operands: Sequence[Array | None], dtype: DType) -> Array | None:
    """The elements of the result, or None in a run without data."""
    arrays = [each for each in operands if each is not None]
    if len(arrays) < len(operands):
        return None
    return compute(name, [each.astype(dtype.numpy, copy=False) for each in arrays], dtype)
