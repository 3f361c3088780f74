"""The matrix engine of a PE: one tile after the other, in the order in which their operands were fetched.

How long a step takes is one of two models. `macs`: so many multiplications a cycle, always those of a full tile. `systolic_os`:
an array of `rows` x `cols` cells that each keep one output. It takes a product of depth K in K cycles, and R + C - 2 more until
the farthest cell has seen its last operands (Samajdar et al., "A systematic methodology for characterizing scalability of DNN
accelerators using SCALE-Sim", ISPASS 2020); the steps of one output tile follow each other without a gap in the array.
"""

from collections import deque
from functools import cache
from math import prod

from runtime.core.trace import Operand, OpRecord
from runtime.language.gemm import accumulate
from runtime.model.tiles import Tile, TileSize
from sip_node.chip.pe.clock import Clock
from sip_node.chip.pe.context import PeContext
from sip_node.chip.pe.operand_tiles import checksum_of
from sip_node.chip.pe.tile_buffers import RegisterFile
from sip_node.chip.pe.tile_token import TileToken


class PeGemm:
    """The engine. `busy_ps` is the time of all steps that have begun, `free_ps` the end of the last one of them.

    `stall_dma_ps`, `stall_fetch_ps` and `stall_store_ps` are the times in which a product was there and no step went on:
    because operands were not yet in TCM, were not yet in registers, or because no accumulator was free.
    """

    def __init__(self, context: PeContext, registers: RegisterFile) -> None:
        topology = context.topology
        self._context, self._engine, self._registers = context, context.engine, registers
        self._model, self._clock = topology.pe.gemm, Clock(topology.pe.gemm.clock_ghz)
        self._full_cycles = -(-prod(topology.tile) // self._model.macs_per_cycle)
        self._waiting: deque[TileToken] = deque()
        self._step_ps = cache(self._cycles_ps)
        self._busy = False
        self.free_ps = 0
        self.busy_ps = 0
        self.tiles = 0
        self.macs = 0
        self.stall_dma_ps = 0
        self.stall_fetch_ps = 0
        self.stall_store_ps = 0
        registers.accumulators.when_freed(self._begin)

    def step_ps(self, tile: Tile) -> int:
        """The time of one step."""
        return self._step_ps(tile.size, tile.last)

    def accept(self, token: TileToken) -> None:
        """Take a token whose operands are in registers."""
        self._waiting.append(token)
        self._begin()

    def _cycles_ps(self, size: TileSize, last: bool) -> int:  # noqa: FBT001
        model = self._model
        if model.model == "macs":
            return self._clock.ps(self._full_cycles)
        passes = -(-size.m // model.rows) * -(-size.n // model.cols)
        skew = model.rows + model.cols - 2 if last else 0
        return self._clock.ps(passes * (size.k + skew))

    def _begin(self) -> None:
        if self._busy or not self._waiting:
            return
        token = self._waiting[0]
        if token.output.accumulator is None:
            if not self._registers.accumulators.available:
                return
            token.output.take_accumulator(self._registers)
        self._waiting.popleft()
        self._busy = True
        now_ps = self._engine.now_ps
        self._count_stall(token, now_ps)
        step_ps = self.step_ps(token.tile)
        self.busy_ps += step_ps
        self.free_ps = now_ps + step_ps
        self._engine.at(self.free_ps, self._end, token, now_ps)

    def _count_stall(self, token: TileToken, now_ps: int) -> None:
        """Split the time since the last step, or since this product came, by what this step has waited for.

        A fetch that begins late because its operands came late is a wait for the operands, no longer than they were late.
        """
        left_ps = now_ps - max(self.free_ps, token.submitted_ps)
        if not left_ps:
            return
        for_store_ps = min(left_ps, now_ps - token.fetched_ps + token.fetch_ps - token.turn_ps)
        left_ps -= for_store_ps
        for_dma_ps = min(left_ps, max(token.ready_ps - max(token.open_ps, token.submitted_ps), 0))
        self.stall_store_ps += for_store_ps
        self.stall_dma_ps += for_dma_ps
        self.stall_fetch_ps += left_ps - for_dma_ps

    def _end(self, token: TileToken, start_ps: int) -> None:
        output, gemm, tile, at = token.output, token.gemm, token.tile, self._context.coordinates
        inputs = self._inputs(token)
        a, b = token.operands
        if a.data is not None and b.data is not None:
            output.data = accumulate(output.data, a.data, b.data)
        record = OpRecord(
            "pe_gemm",
            "gemm",
            start_ps,
            self.free_ps,
            at.cube,
            at.pe,
            output.address,
            prod(output.shape) * gemm.accumulator.itemsize,
            output.shape,
            gemm.accumulator.name,
            inputs=inputs,
            checksum=checksum_of(output.data),
        )
        self._context.record(record)
        self.tiles += 1
        self.macs += prod(tile.size)
        self._busy = False
        self._registers.sets.free(token.registers)
        token.advance()
        self._begin()

    def _inputs(self, token: TileToken) -> tuple[Operand, ...]:
        """The operands in registers, and the accumulator where the sum does not begin with this step."""
        size, output, registers, dtype = (
            token.tile.size,
            token.output,
            self._registers,
            token.gemm.a.dtype.name,
        )
        operands = (
            Operand(registers.a(token.registers), (size.m, size.k), dtype),
            Operand(registers.b(token.registers), (size.k, size.n), dtype),
        )
        if token.tile.first and output.start is None:
            return operands
        return *operands, output.registers(token.gemm.accumulator.name)
