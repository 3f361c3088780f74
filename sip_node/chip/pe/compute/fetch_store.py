"""Moves tiles between TCM and registers: one port of the TCM for each direction."""

from typing import TYPE_CHECKING

from runtime.core.trace import Operand
from runtime.language.gemm import finish
from sip_node.chip.fabric.server import Server
from sip_node.chip.pe.compute.tile_buffers import RegisterFile, TileBuffers
from sip_node.chip.pe.compute.tile_token import SerialStage, TileToken
from sip_node.chip.pe.tcm import direct_memory
from sip_node.kernel import checksums, records
from sip_node.kernel.containers.int_array import IntArray
from sip_node.kernel.tile_data import TileData

if TYPE_CHECKING:
    from sip_node.chip.pe.context import PeContext

_MOST_FETCHES = 4
"""An initial value, both operands, a row of bias."""
_NOT_YET_PS = -1


class PeFetchStore:
    """The two ports. They are separate from each other and from the fabric-side port of the TCM.

    So a fetch, a store and a DMA proceed at the same time, each at the bandwidth of its own port.
    """

    def __init__(self, context: "PeContext", registers: RegisterFile, buffers: TileBuffers) -> None:
        self.fetch = FetchPort(context, registers, buffers)
        self.store = StorePort(context, registers, buffers)

    @property
    def ports(self) -> tuple[Server, Server]:
        """The calendars of both ports."""
        return self.fetch.server, self.store.server


class FetchPort(SerialStage):
    """Fetches the operands of one token after the other, as soon as a register set is free."""

    def __init__(self, context: "PeContext", registers: RegisterFile, buffers: TileBuffers) -> None:
        super().__init__(context)
        self.server = _server(context, "fetch")
        self._registers, self.buffers = registers, buffers.operands
        self._sets, self._accumulators = registers.sets, registers.accumulators
        self._addresses = [
            (registers.a(index), registers.b(index)) for index in range(registers.SETS)
        ]
        # Of the token that the port serves: the number of its fetches, and their times in turn.
        self.fetches = 0
        self.starts_ps, self.ends_ps = IntArray(), IntArray()
        for _ in range(_MOST_FETCHES):
            self.starts_ps.append(0)
            self.ends_ps.append(0)
        self.open_ps, self.turn_ps = 0, _NOT_YET_PS
        self.records = 0
        registers.sets.when_freed(self.begin)
        registers.accumulators.when_freed(self.begin)

    def begin(self) -> None:
        """Begin the next fetch if port, register set, operands and accumulator are there.

        Called whenever one of them may have become available; it notes since when each was.
        """
        if self.is_busy or not self._sets.filled:
            return
        now_ps = self.engine.now_ps
        if self.open_ps < 0:
            self.open_ps = now_ps
        if not self.waiting:
            return
        if self.turn_ps < 0:
            self.turn_ps = now_ps
        # The first token waits for its accumulator and holds up the others: steps never overtake,
        # since those of one output tile must be summed in order.
        token = self.waiting[0]
        output = token.output
        start = output.start if token.first else None
        if start is not None:
            # A sum with an initial value needs its accumulator before that value is fetched.
            if not self._accumulators.filled:
                return
            output.take_accumulator(self._registers)
            output.data = start.data
        self.waiting.popleft()
        self.is_busy = True
        token.open_ps, token.turn_ps, token.fetch_ps = self.open_ps, self.turn_ps, now_ps
        self.open_ps = self.turn_ps = _NOT_YET_PS
        token.registers = self._sets.take()
        self.fetches = 0
        if start is not None:
            self._fetch(start, now_ps)
        # Both tiles pass one port, one behind the other: a step with few rows or columns is bound
        # by their bytes, and not by the engine.
        self._fetch(token.a, now_ps)
        self._fetch(token.b, now_ps)
        if token.last and output.bias is not None:
            # With the last step, which is when the epilogue needs it: the row is occupied briefly.
            output.bias_row = self._registers.biases.take()
            self._fetch(output.bias, now_ps)
        self.ends_at(self.server.tail_ps, token)

    def _fetch(self, tile: TileData | None, now_ps: int) -> None:
        assert tile is not None
        # The head and the tail are both here.
        start_ps = self.server.serve(now_ps, now_ps, tile.nbytes)
        self.starts_ps.values[self.fetches] = start_ps
        self.ends_ps.values[self.fetches] = self.server.tail_ps
        self.fetches += 1

    def end(self, token: TileToken) -> None:
        """The tiles of a token are in registers."""
        output, (a, b) = token.output, self._addresses[token.registers]
        recorded = 0
        if token.first and output.start is not None:
            self._record(0, token, output.start, output.address)
            recorded = 1
        self._record(recorded, token, token.a, a)
        self._record(recorded + 1, token, token.b, b)
        if recorded + 2 < self.fetches:
            self._record(recorded + 2, token, output.bias, self._registers.bias(output.bias_row))
        self.records += self.fetches
        self.fetches = 0
        self.is_busy = False
        token.fetched_ps = self.engine.now_ps
        token.advance()
        # The operands are in registers, so the next DMA may overwrite their buffers in TCM.
        self.buffers.free(token.buffer)
        self.begin()

    def _record(self, index: int, token: TileToken, tile: TileData | None, address: int) -> None:
        assert tile is not None
        records.enter_tile(
            self._log,
            "pe_fetch_store",
            "fetch",
            self.starts_ps.values[index],
            self.ends_ps.values[index],
            self._cube,
            self._pe,
            address,
            tile.nbytes,
            tile.checksum,
            token.arrived_ps,
            records.FOR_ENGINE,
            token.step,
            tile.shape,
            tile.element,
            tile.inputs,
        )


class StorePort(SerialStage):
    """Stores complete output tiles, rounded once to the type of the result."""

    def __init__(self, context: "PeContext", registers: RegisterFile, buffers: TileBuffers) -> None:
        super().__init__(context)
        self.server = _server(context, "store")
        self._accumulators, self._results = registers.accumulators, buffers.results
        self._buffers = buffers
        self._tcm, self._memory = context.tcm, direct_memory(context.tcm)
        # Of the token that the port serves.
        self._target: Operand | None = None
        self._nbytes = self.start_ps = 0
        self.records = 0
        buffers.results.when_freed(self.begin)

    def begin(self) -> None:
        """Begin the next store if the port and a buffer are free."""
        if self.is_busy or not self.waiting:
            return
        token, now_ps = self.waiting[0], self.engine.now_ps
        if not self._find_target(token):
            return
        self.waiting.popleft()
        self.is_busy = True
        height, width = token.output.shape
        # In the type of the result: the accumulator is rounded on its way, so a store of f16 moves
        # half the bytes of the sum.
        self._nbytes = height * width * token.gemm.dtype.itemsize
        # The head and the tail are both here: registers deliver a tile at any rate.
        self.start_ps = self.server.serve(now_ps, now_ps, self._nbytes)
        self.ends_at(self.server.tail_ps, token)

    def _find_target(self, token: TileToken) -> bool:
        """Part of a value, or a buffer; returns False while no buffer is free."""
        output = token.output
        self._target = output.target
        if self._target is None:
            if not self._results.filled:
                return False
            output.buffer = self._results.take()
            output.stored = self._target = Operand(
                self._buffers.result(output.buffer), output.shape, token.gemm.dtype.name
            )
        return True

    def end(self, token: TileToken) -> None:
        """A tile is in TCM."""
        output, target = token.output, self._target
        assert target is not None
        content = b""
        if output.data is not None:
            output.data = finish(output.data, None, None, token.gemm.dtype)
            content = output.data.tobytes()
            if self._memory is not None and not target.strides:
                self._memory.write(target.address - self._tcm.base, content)
            else:
                self._tcm.write(target, content)
        output.content = content
        records.enter(
            self._log,
            "pe_fetch_store",
            "store",
            self.start_ps,
            self.engine.now_ps,
            self._cube,
            self._pe,
            self._nbytes,
            checksums.checksum_of(content),
            token.arrived_ps,
            records.FOR_ENGINE,
            token.step,
            target,
            (output.registers(token.shape.accumulator),),
            None,
            None,
        )
        self.records += 1
        self.is_busy = False
        # All of the tile is in TCM, so another output tile may sum in its accumulator.
        assert output.accumulator is not None
        self._accumulators.free(output.accumulator)
        token.advance()
        self.begin()


def _server(context: "PeContext", port: str) -> Server:
    """The calendar of a port."""
    bw_gbs = context.topology.pe.fetch_store.bw_gbs
    return Server(f"{context.coordinates}: pe_fetch_store {port}", bw_gbs)
