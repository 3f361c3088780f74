"""The vector engine of a PE: the arithmetic of kernels, and the epilogues of matrix products.

Fetch port, engine and store port are calendars (`Server`): an operation reserves all three when it
starts, in the order of the calls, so its end is known at once and needs one event.
"""

from collections.abc import Sequence
from math import prod
from zlib import crc32

from runtime.core.dtypes import DType
from runtime.core.trace import Operand, OpRecord
from runtime.language.operations import REDUCTIONS, compute, passes
from runtime.language.value import Array
from sip_node.chip.pe.clock import Clock
from sip_node.chip.pe.context import PeContext
from sip_node.chip.pe.fetch_store import PeFetchStore
from sip_node.chip.pe.operand_tiles import checksum_of
from sip_node.chip.pe.tile_buffers import RegisterFile
from sip_node.chip.pe.tile_token import TileToken
from sip_node.chip.strided_block import item_bytes, nbytes_of

_LANE_BYTES = 4


class PeMath:
    """Processes `lanes` elements a cycle after a pipeline fill, one operation after the other.

    An operation of a kernel is fetch, compute, store in sequence. An epilogue works in place on an
    accumulator, so it moves no data.
    """

    def __init__(
        self, context: PeContext, fetch_store: PeFetchStore, registers: RegisterFile
    ) -> None:
        math = context.topology.pe.math
        self._context, self._engine, self._registers = context, context.engine, registers
        self._fetch_store = fetch_store
        self._lanes, self._pipeline_cycles = math.lanes, math.pipeline_cycles
        self._clock = Clock(math.clock_ghz)
        self.free_ps = 0
        self.busy_ps = 0
        self.records = 0

    def compute_ps(self, name: str, numel: int) -> int:
        """Pipeline fill + passes x ceil(elements / lanes) cycles; a reduction takes more.

        An element of 8 bytes counts as two, since a lane has 32 bits.

        The lanes keep `lanes` partial results, which a tree of depth ceil(log2(lanes)) combines.
        """
        tree = (self._lanes - 1).bit_length() if name in REDUCTIONS else 0
        return self._clock.ps(
            self._pipeline_cycles + passes(name) * -(-numel // self._lanes) + tree
        )

    def run(
        self,
        name: str,
        inputs: Sequence[Operand | float],
        result: Operand,
        data: bytes,
        axis: int | None = None,
    ) -> int:
        """Reserve fetch, engine and store for one operation; returns when the result is in TCM.

        Operands and result are blocks in TCM; `data` are the elements of the result, in row-major
        order.
        """
        now_ps = self._engine.now_ps
        blocks = [each for each in inputs if isinstance(each, Operand)]
        # All operands pass the port before the engine starts.
        _, ready_ps = self._fetch_store.fetch.server.reserve(
            now_ps, now_ps, sum(map(nbytes_of, blocks))
        )
        # A reduction has more inputs than outputs, a broadcast the reverse: the larger one counts.
        start_ps = self._occupy(name, max(map(_lane_elements, (*blocks, result))), ready_ps)
        _, end_ps = self._fetch_store.store.server.reserve(
            self.free_ps, self.free_ps, nbytes_of(result)
        )
        record = self._record(name, (start_ps, end_ps), inputs, result, crc32(data), axis)
        self._engine.at(end_ps, self._end, record, result, data)
        return end_ps

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
                Operand(self._registers.bias(output.bias_row), bias.block.shape, bias.block.dtype),
            )
            output.data = _computed("add", (output.data, bias.data), sums)
            self._epilogue("add", inputs, accumulator, output.data)
        if gemm.activation is not None:
            output.data = _computed(gemm.activation, (output.data,), sums)
            self._epilogue(gemm.activation, (accumulator,), accumulator, output.data)
        # After the last epilogue of this token: `free_ps` is its end.
        self._engine.at(self.free_ps, self._pass_on, token)

    def _pass_on(self, token: TileToken) -> None:
        if token.output.bias is not None:
            self._registers.biases.free(token.output.bias_row)
        token.advance()

    def _epilogue(
        self, name: str, inputs: tuple[Operand, ...], result: Operand, data: Array | None
    ) -> None:
        # A reduction has more inputs than outputs, a broadcast the reverse: the larger one counts.
        start_ps = self._occupy(name, prod(result.shape), self._engine.now_ps)
        record = self._record(name, (start_ps, self.free_ps), inputs, result, checksum_of(data))
        self._engine.at(self.free_ps, self._context.record, record)

    def _occupy(self, name: str, numel: int, ready_ps: int) -> int:
        """Reserve the engine for one operation; returns its start. Its end is `free_ps`."""
        start_ps = max(ready_ps, self.free_ps)
        self.free_ps = start_ps + self.compute_ps(name, numel)
        self.busy_ps += self.free_ps - start_ps
        self.records += 1
        return start_ps

    def _record(
        self,
        name: str,
        span_ps: tuple[int, int],
        inputs: Sequence[Operand | float],
        result: Operand,
        checksum: int,
        axis: int | None = None,
    ) -> OpRecord:
        at = self._context.coordinates
        start_ps, end_ps = span_ps
        return OpRecord(
            engine="pe_math",
            name=name,
            start_ps=start_ps,
            end_ps=end_ps,
            cube=at.cube,
            pe=at.pe,
            address=result.address,
            nbytes=nbytes_of(result),
            shape=result.shape,
            dtype=result.dtype,
            inputs=tuple(inputs),
            strides=result.strides,
            axis=axis,
            checksum=checksum,
        )

    def _end(self, record: OpRecord, result: Operand, data: bytes) -> None:
        self._context.tcm.write(result, data)
        self._context.record(record)


def _lane_elements(block: Operand) -> int:
    """The elements of a block in lanes of 32 bits."""
    return prod(block.shape) * max(1, item_bytes(block.dtype) // _LANE_BYTES)


def _computed(name: str, operands: Sequence[Array | None], dtype: DType) -> Array | None:
    """The elements of the result, or None in a run without data."""
    arrays = [each for each in operands if each is not None]
    if len(arrays) < len(operands):
        return None
    return compute(name, [each.astype(dtype.numpy, copy=False) for each in arrays], dtype)
