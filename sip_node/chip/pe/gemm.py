"""The matrix engine of a PE: one tile after the other, in the order in which operands were fetched.

The duration of a step follows one of two models. `macs`: a fixed number of multiply-accumulates a
cycle, always those of a full tile. `systolic_os`: an output-stationary array of `rows` x `cols`
cells, each of which keeps one output. It takes a product of depth K in K cycles, and R + C - 2 more
until the farthest cell has received its last operands (Samajdar et al., "A systematic methodology
for characterizing scalability of DNN accelerators using SCALE-Sim", ISPASS 2020); the steps of one
output tile follow each other without a gap in the array, so only its last step pays for the skew.
"""

from collections import deque
from functools import cache
from math import prod
from typing import TYPE_CHECKING, NamedTuple

from runtime.core.compiled.choice import IS_COMPILED
from runtime.core.coordinates import PeCoordinates
from runtime.core.run_tables import Cause
from runtime.core.trace import Operand, OpRecord
from runtime.language.gemm import accumulate as accumulate_tile
from runtime.language.value import Array
from runtime.model.tiles import Tile, TileSize
from sip_node.chip.op_log import OpLog
from sip_node.chip.pe.clock import Clock
from sip_node.chip.pe.context import PeContext
from sip_node.chip.pe.operand_tiles import checksum_of
from sip_node.chip.pe.tile_buffers import RegisterFile
from sip_node.chip.pe.tile_token import TileToken
from sip_node.pdes.engine import Engine


class Stall(NamedTuple):
    """Idle time of the engine before a step, by cause."""

    dma_ps: int
    fetch_ps: int
    store_ps: int


def stall_before(token: TileToken, idle_since_ps: int, now_ps: int) -> Stall:
    """Attribute the idle time [idle_since_ps, now_ps) before the step of `token` to its causes.

    The times that a token carries, in the order in which they happen:

        TCM         = operands in transit ==|
        fetch port             |            |         |      |=== fetch ===|
        engine    ==|                                                                    |==
                    |          |            |         |      |             |             |
               idle_since    open         ready     turn   fetch        fetched         now
        counts as   |- fetch --|--- dma ----|- fetch -|store-|--- fetch ---|--- store ---|

    `open`: the fetch port and a register set are free; `ready`: the operands are in TCM; `turn`:
    it is this step's turn to be fetched; it may still need an accumulator that is loaded with an
    initial value. From `fetched` on only an accumulator can be missing. Accumulators are occupied
    until they are stored, so both waits for one count as `store`.

    Part of all this passed while the engine still computed the previous step, so no cause counts
    for more than what is left of the idle time: the latest wait first, since it is what the engine
    waited for in the end. A fetch that begins late because its operands were late is a wait for the
    DMA, for as long as they were late. Transit through the port is the rest.
    """
    idle_ps = now_ps - idle_since_ps
    for_accumulator_ps = (now_ps - token.fetched_ps) + (token.fetch_ps - token.turn_ps)
    store_ps = min(idle_ps, for_accumulator_ps)
    # Before the product was submitted nothing was late.
    late_ps = token.ready_ps - max(token.open_ps, token.submitted_ps)
    dma_ps = min(idle_ps - store_ps, max(late_ps, 0))
    return Stall(dma_ps, idle_ps - store_ps - dma_ps, store_ps)


class ReferenceGemmSteps:
    """The steps of an engine, one at a time, with their records and the idle time before them."""

    def __init__(
        self,
        engine: Engine,
        log: OpLog,
        at: PeCoordinates,
        registers: RegisterFile,
        products: None = None,  # noqa: ARG002 - what the twin adds steps by
    ) -> None:
        self._engine, self._record, self._at = engine, log.add, at
        self._registers = registers
        self._sets, self._accumulators = registers.sets, registers.accumulators
        self._waiting: deque[TileToken] = deque()
        self._busy = False
        # Of the step in the engine: since when it has waited, and for what.
        self._requested_ps, self._cause = 0, Cause.NONE
        self.free_ps = 0
        self.busy_ps = 0
        self.tiles = 0
        self.macs = 0
        self.stall_dma_ps = 0
        self.stall_fetch_ps = 0
        self.stall_store_ps = 0
        registers.accumulators.when_freed(self._begin)

    def accept(self, token: TileToken) -> None:
        """Take a token whose operands are in registers."""
        token.arrived_ps = self._engine.now_ps
        self._waiting.append(token)
        self._begin()

    def accumulated(self, sums: Array | None, a: Array, b: Array) -> Array:
        """The sums in an accumulator after a step, None for zeros."""
        raise NotImplementedError

    def operands(self, token: TileToken, begins: bool) -> tuple[Operand, ...]:  # noqa: FBT001
        """What a step reads: its operands in registers, and the sums unless they begin with it."""
        raise NotImplementedError

    def _begin(self) -> None:
        if self._busy or not self._waiting:
            return
        token = self._waiting[0]
        if token.output.accumulator is None:
            # The first step of an output tile reserves the accumulator, the others add to it.
            if not self._accumulators.available:
                return
            token.output.take_accumulator(self._registers)
        self._waiting.popleft()
        self._busy = True
        now_ps = self._engine.now_ps
        self._count_stall(token, now_ps)
        self._requested_ps, self._cause = token.arrived_ps, Cause.ENGINE
        if token.arrived_ps == now_ps:
            # The engine has waited for the operands, since it was free for this product.
            self._requested_ps = max(self.free_ps, token.submitted_ps)
            self._cause = Cause.OPERAND
        step_ps = token.shape.step_ps
        self.busy_ps += step_ps
        self.free_ps = now_ps + step_ps
        self._engine.at(self.free_ps, self._end, token, now_ps)

    def _count_stall(self, token: TileToken, now_ps: int) -> None:
        # An engine without work does not stall: count from the submission of this product on.
        idle_since_ps = max(self.free_ps, token.submitted_ps)
        if idle_since_ps == now_ps:
            return
        stall = stall_before(token, idle_since_ps, now_ps)
        self.stall_dma_ps += stall.dma_ps
        self.stall_fetch_ps += stall.fetch_ps
        self.stall_store_ps += stall.store_ps

    def _end(self, token: TileToken, start_ps: int) -> None:
        output, shape, at = token.output, token.shape, self._at
        a, b = token.a.data, token.b.data
        if a is not None and b is not None:
            output.data = self.accumulated(output.data, a, b)
        record = OpRecord(
            engine="pe_gemm",
            name="gemm",
            start_ps=start_ps,
            end_ps=self.free_ps,
            cube=at.cube,
            pe=at.pe,
            address=output.address,
            nbytes=shape.output_bytes,
            shape=output.shape,
            dtype=shape.accumulator,
            inputs=self._inputs(token),
            checksum=checksum_of(output.data),
        )
        self._record(record, self._requested_ps, self._cause)
        self.tiles += 1
        self.macs += token.shape.macs
        self._busy = False
        # Free the set before the token goes on: the fetch of a later step may begin in this event.
        self._sets.free(token.registers)
        token.advance()
        self._begin()

    def _inputs(self, token: TileToken) -> tuple[Operand, ...]:
        output, shape = token.output, token.shape
        begins = token.tile.first and output.start is None
        key = (token.registers, -1 if begins else output.address)
        inputs = shape.inputs.get(key)
        if inputs is None:
            inputs = shape.inputs[key] = self.operands(token, begins)
        return inputs


if TYPE_CHECKING or not IS_COMPILED:
    GemmSteps = ReferenceGemmSteps
    accumulate = accumulate_tile
    _PRODUCTS = None
else:
    from sip_node.compiled.tile_product import TileProducts
    from sip_node.compiled.tile_stages import GemmStage as GemmSteps

    _PRODUCTS = TileProducts(accumulate_tile)
    accumulate = _PRODUCTS.accumulate


class PeGemm(GemmSteps):
    """The engine. `busy_ps` is the time of all steps that have begun, `free_ps` their last end.

    `stall_dma_ps`, `stall_fetch_ps` and `stall_store_ps` add up the idle times in which a product
    was submitted and no step ran.
    """

    def __init__(self, context: PeContext, registers: RegisterFile) -> None:
        # A class that computes steps in another way does so in Python.
        overrides = type(self).accumulated is not PeGemm.accumulated
        super().__init__(
            context.engine,
            context.log,
            context.coordinates,
            registers,
            None if overrides else _PRODUCTS,
        )
        topology = context.topology
        self._engine, self._registers = context.engine, registers
        self._model, self._clock = topology.pe.gemm, Clock(topology.pe.gemm.clock_ghz)
        self._full_cycles = -(-prod(topology.tile) // self._model.macs_per_cycle)
        self._step_ps = cache(self._cycles_ps)

    def step_ps(self, tile: Tile) -> int:
        """The duration of a step of this size, which is, or is not, the last of its output tile."""
        return self._step_ps(tile.size, tile.last)

    def accumulated(self, sums: Array | None, a: Array, b: Array) -> Array:
        """See `ReferenceGemmSteps`."""
        return accumulate(sums, a, b)

    def operands(self, token: TileToken, begins: bool) -> tuple[Operand, ...]:  # noqa: FBT001
        """See `ReferenceGemmSteps`."""
        size, registers, dtype = token.shape.size, self._registers, token.gemm.a.dtype.name
        operands = (
            Operand(registers.a(token.registers), (size.m, size.k), dtype),
            Operand(registers.b(token.registers), (size.k, size.n), dtype),
        )
        return operands if begins else (*operands, token.output.registers(token.shape.accumulator))

    def _cycles_ps(self, size: TileSize, last: bool) -> int:  # noqa: FBT001 - the key of a cache
        model = self._model
        if model.model == "macs":
            return self._clock.ps(self._full_cycles)
        passes = -(-size.m // model.rows) * -(-size.n // model.cols)
        skew = model.rows + model.cols - 2 if last else 0
        return self._clock.ps(passes * (size.k + skew))
