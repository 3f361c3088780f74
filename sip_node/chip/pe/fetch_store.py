"""Between TCM and registers: two ports of the TCM, one for each direction, of their own bandwidth."""

from collections import deque
from zlib import crc32

from runtime.core.trace import Operand, OpRecord
from runtime.language.gemm import finish
from sip_node.chip.fabric.server import Server
from sip_node.chip.pe.context import PeContext
from sip_node.chip.pe.operand_tiles import TileData
from sip_node.chip.pe.tile_buffers import RegisterFile, TileBuffers
from sip_node.chip.pe.tile_token import TileToken
from sip_node.chip.strided_block import nbytes_of


class PeFetchStore:
    """The two ports; they do not disturb each other, nor what the fabric moves into and out of TCM."""

    def __init__(self, context: PeContext, registers: RegisterFile, buffers: TileBuffers) -> None:
        self.fetch = FetchPort(context, registers, buffers)
        self.store = StorePort(context, registers, buffers)

    @property
    def ports(self) -> tuple[Server, Server]:
        """The calendars of both ports."""
        return self.fetch.server, self.store.server


class FetchPort:
    """Fetches the operands of one token after the other, as soon as a register set is free."""

    def __init__(self, context: PeContext, registers: RegisterFile, buffers: TileBuffers) -> None:
        self._context, self._engine = context, context.engine
        self._registers, self._buffers = registers, buffers
        self.server = Server(
            f"{context.coordinates}: pe_fetch_store fetch", context.topology.pe.fetch_store.bw_gbs
        )
        self._waiting: deque[TileToken] = deque()
        self._busy = False
        self._open_ps: int | None = 0
        self._turn_ps: int | None = None
        self.records = 0
        registers.sets.when_freed(self._begin)
        registers.accumulators.when_freed(self._begin)

    def accept(self, token: TileToken) -> None:
        """Take a token whose operands are in TCM."""
        self._waiting.append(token)
        self._begin()

    def _begin(self) -> None:
        if self._busy or not self._registers.sets.available:
            return
        now_ps = self._engine.now_ps
        self._open_ps = now_ps if self._open_ps is None else self._open_ps
        if not self._waiting:
            return
        self._turn_ps = now_ps if self._turn_ps is None else self._turn_ps
        token = self._waiting[0]
        if not self._has_accumulator(token):
            return
        self._waiting.popleft()
        self._busy = True
        token.open_ps, token.turn_ps, token.fetch_ps = self._open_ps, self._turn_ps, now_ps
        self._open_ps = self._turn_ps = None
        token.registers = self._registers.sets.take()
        records = [self._reserve(tile, to) for tile, to in self._wanted(token)]
        self._engine.at(records[-1].end_ps, self._end, token, records)

    def _has_accumulator(self, token: TileToken) -> bool:
        """A sum that starts from a matrix needs its accumulator before it is fetched."""
        output = token.output
        if output.start is None or not token.tile.first:
            return True
        if not self._registers.accumulators.available:
            return False
        output.take_accumulator(self._registers)
        output.data = output.start.data
        return True

    def _wanted(self, token: TileToken) -> list[tuple[TileData, int]]:
        tile, output, registers = token.tile, token.output, self._registers
        wanted = list(
            zip(
                token.operands,
                (registers.a(token.registers), registers.b(token.registers)),
                strict=True,
            )
        )
        if tile.first and output.start is not None:
            wanted.insert(0, (output.start, output.address))
        if tile.last and output.bias is not None:
            output.bias_row = registers.biases.take()
            wanted.append((output.bias, registers.bias(output.bias_row)))
        return wanted

    def _reserve(self, tile: TileData, to: int) -> OpRecord:
        block, at, now_ps = tile.block, self._context.coordinates, self._engine.now_ps
        nbytes = nbytes_of(block)
        start_ps, end_ps = self.server.reserve(now_ps, now_ps, nbytes)
        return OpRecord(
            "pe_fetch_store",
            "fetch",
            start_ps,
            end_ps,
            at.cube,
            at.pe,
            to,
            nbytes,
            block.shape,
            block.dtype,
            inputs=(block,),
            checksum=tile.checksum,
        )

    def _end(self, token: TileToken, records: list[OpRecord]) -> None:
        for record in records:
            self._context.record(record)
        self.records += len(records)
        self._busy = False
        token.fetched_ps = self._engine.now_ps
        token.advance()
        self._buffers.operands.free(token.buffer)
        self._begin()


class StorePort:
    """Stores finished output tiles, rounded once to the type of the result; the accumulator is free when all is in TCM."""

    def __init__(self, context: PeContext, registers: RegisterFile, buffers: TileBuffers) -> None:
        self._context, self._engine = context, context.engine
        self._registers, self._buffers = registers, buffers
        self.server = Server(
            f"{context.coordinates}: pe_fetch_store store", context.topology.pe.fetch_store.bw_gbs
        )
        self._waiting: deque[TileToken] = deque()
        self._busy = False
        self.records = 0
        buffers.results.when_freed(self._begin)

    def accept(self, token: TileToken) -> None:
        """Take a token whose output tile is complete."""
        self._waiting.append(token)
        self._begin()

    def _begin(self) -> None:
        if self._busy or not self._waiting:
            return
        token, now_ps = self._waiting[0], self._engine.now_ps
        target = self._target(token)
        if target is None:
            return
        self._waiting.popleft()
        self._busy = True
        start_ps, end_ps = self.server.reserve(now_ps, now_ps, nbytes_of(target))
        self._engine.at(end_ps, self._end, token, target, start_ps)

    def _target(self, token: TileToken) -> Operand | None:
        """A part of a value, or a buffer once one is free."""
        output = token.output
        if output.target is not None:
            return output.target
        if not self._buffers.results.available:
            return None
        output.buffer = self._buffers.results.take()
        return Operand(self._buffers.result(output.buffer), output.shape, token.gemm.dtype.name)

    def _end(self, token: TileToken, target: Operand, start_ps: int) -> None:
        output, gemm, at = token.output, token.gemm, self._context.coordinates
        source = output.registers(gemm.accumulator.name)
        content = b""
        if output.data is not None:
            output.data = finish(output.data, None, None, gemm.dtype)
            content = output.data.tobytes()
            self._context.tcm.write(target, content)
        record = OpRecord(
            "pe_fetch_store",
            "store",
            start_ps,
            self._engine.now_ps,
            at.cube,
            at.pe,
            target.address,
            nbytes_of(target),
            target.shape,
            target.dtype,
            inputs=(source,),
            strides=target.strides,
            checksum=crc32(content),
        )
        self._context.record(record)
        self.records += 1
        self._busy = False
        assert output.accumulator is not None
        self._registers.accumulators.free(output.accumulator)
        token.advance()
        self._begin()
