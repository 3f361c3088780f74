"""Moves tiles between TCM and registers: one port of the TCM for each direction."""

from collections import deque
from typing import TYPE_CHECKING
from zlib import crc32

from runtime.core.compiled.choice import IS_COMPILED
from runtime.core.run_tables import Cause
from runtime.core.trace import Operand, OpRecord
from runtime.language.gemm import finish
from sip_node.chip.fabric.server import Server
from sip_node.chip.pe.context import PeContext
from sip_node.chip.pe.operand_tiles import TileData
from sip_node.chip.pe.tcm import direct_memory
from sip_node.chip.pe.tile_buffers import RegisterFile, TileBuffers
from sip_node.chip.pe.tile_token import OutputTile, TileToken
from sip_node.chip.pe.vector_record import vector_record
from sip_node.chip.strided_block import nbytes_of


class PeFetchStore:
    """The two ports. They are separate from each other and from the fabric-side port of the TCM.

    So a fetch, a store and a DMA proceed at the same time, each at the bandwidth of its own port.
    """

    def __init__(self, context: PeContext, registers: RegisterFile, buffers: TileBuffers) -> None:
        self.fetch = FetchPort(context, registers, buffers)
        self.store = StorePort(context, registers, buffers)

    @property
    def ports(self) -> tuple[Server, Server]:
        """The calendars of both ports."""
        return self.fetch.server, self.store.server


class ReferenceFetchPort:
    """Fetches the operands of one token after the other, as soon as a register set is free."""

    def __init__(self, context: PeContext, registers: RegisterFile, buffers: TileBuffers) -> None:
        self._engine, self._record, self._at = context.engine, context.record, context.coordinates
        self._registers, self._buffers = registers, buffers
        self.server = _server(context, "fetch")
        self._sets, self._accumulators = registers.sets, registers.accumulators
        self._addresses = [
            (registers.a(index), registers.b(index)) for index in range(registers.SETS)
        ]
        self._waiting: deque[TileToken] = deque()
        self._busy = False
        self._open_ps: int | None = 0
        self._turn_ps: int | None = None
        self.records = 0
        registers.sets.when_freed(self._begin)
        registers.accumulators.when_freed(self._begin)

    def accept(self, token: TileToken) -> None:
        """Take a token whose operands are in TCM."""
        token.arrived_ps = self._engine.now_ps
        self._waiting.append(token)
        self._begin()

    def _begin(self) -> None:
        """Begin the next fetch if port, register set, operands and accumulator are there.

        Called whenever one of them may have become available; it notes since when each was.
        """
        if self._busy or not self._sets.available:
            return
        now_ps = self._engine.now_ps
        if self._open_ps is None:
            self._open_ps = now_ps
        if not self._waiting:
            return
        if self._turn_ps is None:
            self._turn_ps = now_ps
        # The first token waits for its accumulator and holds up the others: steps never overtake,
        # since those of one output tile must be summed in order.
        token = self._waiting[0]
        output, tile = token.output, token.tile
        begins = tile.first and output.start is not None
        if begins and not self._take_accumulator(output):
            return
        self._waiting.popleft()
        self._busy = True
        token.open_ps, token.turn_ps, token.fetch_ps = self._open_ps, self._turn_ps, now_ps
        self._open_ps = self._turn_ps = None
        token.registers = self._sets.take()
        address_a, address_b = self._addresses[token.registers]
        records = list[OpRecord]()
        if begins and output.start is not None:
            records.append(self._reserve(output.start, output.address, now_ps))
        records += (
            self._reserve(token.a, address_a, now_ps),
            self._reserve(token.b, address_b, now_ps),
        )
        if tile.last and output.bias is not None:
            # With the last step, which is when the epilogue needs it: the row is occupied briefly.
            output.bias_row = self._registers.biases.take()
            address = self._registers.bias(output.bias_row)
            records.append(self._reserve(output.bias, address, now_ps))
        self._engine.at(records[-1].end_ps, self._end, token, records)

    def _take_accumulator(self, output: OutputTile) -> bool:
        """A sum with an initial value needs its accumulator before that value is fetched."""
        assert output.start is not None
        if not self._accumulators.available:
            return False
        output.take_accumulator(self._registers)
        output.data = output.start.data
        return True

    def _reserve(self, tile: TileData, address: int, now_ps: int) -> OpRecord:
        block, at, nbytes = tile.block, self._at, tile.nbytes
        start_ps, end_ps = self.server.reserve(now_ps, now_ps, nbytes)
        return OpRecord(
            engine="pe_fetch_store",
            name="fetch",
            start_ps=start_ps,
            end_ps=end_ps,
            cube=at.cube,
            pe=at.pe,
            address=address,
            nbytes=nbytes,
            shape=block.shape,
            dtype=block.dtype,
            inputs=(block,),
            checksum=tile.checksum,
        )

    def _end(self, token: TileToken, records: list[OpRecord]) -> None:
        for record in records:
            self._record(record, token.arrived_ps, Cause.ENGINE)
        self.records += len(records)
        self._busy = False
        token.fetched_ps = self._engine.now_ps
        token.advance()
        # The operands are in registers, so the next DMA may overwrite their buffers in TCM.
        self._buffers.operands.free(token.buffer)
        self._begin()


if TYPE_CHECKING or not IS_COMPILED:
    FetchPort = ReferenceFetchPort
else:
    from sip_node.compiled.tile_stages import FetchStage

    class FetchPort(FetchStage):
        """The port in C; see `ReferenceFetchPort`."""

        def __init__(
            self, context: PeContext, registers: RegisterFile, buffers: TileBuffers
        ) -> None:
            at, server = context.coordinates, _server(context, "fetch")
            super().__init__(context.engine, server, context.log, at, registers, buffers.operands)


class ReferenceStorePort:
    """Stores complete output tiles, rounded once to the type of the result."""

    def __init__(self, context: PeContext, registers: RegisterFile, buffers: TileBuffers) -> None:
        self._context, self._engine = context, context.engine
        self._registers, self._buffers = registers, buffers
        self.server = _server(context, "store")
        self._waiting: deque[TileToken] = deque()
        self._busy = False
        self.records = 0
        buffers.results.when_freed(self._begin)

    def accept(self, token: TileToken) -> None:
        """Take a token whose output tile is complete."""
        token.arrived_ps = self._engine.now_ps
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
        # The head and the tail are both here: registers deliver a tile at any rate.
        start_ps, end_ps = self.server.reserve(now_ps, now_ps, nbytes_of(target))
        self._engine.at(end_ps, self._end, token, target, start_ps)

    def _target(self, token: TileToken) -> Operand | None:
        """Part of a value, or a buffer; None while no buffer is free."""
        output = token.output
        if output.target is not None:
            return output.target
        if not self._buffers.results.available:
            return None
        output.buffer = self._buffers.results.take()
        return Operand(self._buffers.result(output.buffer), output.shape, token.gemm.dtype.name)

    def _end(self, token: TileToken, target: Operand, start_ps: int) -> None:
        output, gemm = token.output, token.gemm
        source = output.registers(gemm.accumulator.name)
        content = b""
        if output.data is not None:
            output.data = finish(output.data, None, None, gemm.dtype)
            content = output.data.tobytes()
            self._context.tcm.write(target, content)
        record = vector_record(
            self._context.coordinates,
            "store",
            (start_ps, self._engine.now_ps),
            (source,),
            target,
            crc32(content),
            engine="pe_fetch_store",
        )
        self._context.record(record, token.arrived_ps, Cause.ENGINE)
        self.records += 1
        self._busy = False
        # All of the tile is in TCM, so another output tile may sum in its accumulator.
        assert output.accumulator is not None
        self._registers.accumulators.free(output.accumulator)
        token.advance()
        self._begin()


if TYPE_CHECKING or not IS_COMPILED:
    StorePort = ReferenceStorePort
else:
    from sip_node.compiled.tile_results import StoreStage

    class StorePort(StoreStage):
        """The port in C; see `ReferenceStorePort`."""

        def __init__(
            self, context: PeContext, registers: RegisterFile, buffers: TileBuffers
        ) -> None:
            super().__init__(
                engine=context.engine,
                server=_server(context, "store"),
                log=context.log,
                at=context.coordinates,
                registers=registers,
                buffers=buffers,
                tcm=context.tcm,
                memory=direct_memory(context.tcm),
                finish=finish,
            )


def _server(context: PeContext, port: str) -> Server:
    """The calendar of a port."""
    bw_gbs = context.topology.pe.fetch_store.bw_gbs
    return Server(f"{context.coordinates}: pe_fetch_store {port}", bw_gbs)
