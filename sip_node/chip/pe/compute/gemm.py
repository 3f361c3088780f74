"""The matrix engine of a PE: one tile after the other, in the order in which operands were fetched.

The duration of a step follows one of two models. `macs`: a fixed number of multiply-accumulates a
cycle, always those of a full tile. `systolic_os`: an output-stationary array of `rows` x `cols`
cells, each of which keeps one output. It takes a product of depth K in K cycles, and R + C - 2 more
until the farthest cell has received its last operands (Samajdar et al., "A systematic methodology
for characterizing scalability of DNN accelerators using SCALE-Sim", ISPASS 2020); the steps of one
output tile follow each other without a gap in the array, so only its last step pays for the skew.
"""

from functools import cache
from math import prod
from typing import TYPE_CHECKING, Any

from runtime.core.trace import Operand
from runtime.language.gemm import accumulate
from runtime.language.value import Array
from runtime.model.tiles import Tile, TileSize
from sip_node.chip.pe.compute.tile_buffers import RegisterFile
from sip_node.chip.pe.compute.tile_token import SerialStage, TileToken
from sip_node.chip.pe.compute.vector_stream import Clock
from sip_node.kernel import records

if TYPE_CHECKING:
    from sip_node.chip.pe.context import PeContext


def stall_before(token: TileToken, idle_since_ps: int, now_ps: int) -> tuple[int, int, int]:
    """Attribute the idle time [idle_since_ps, now_ps) before the step of `token` to its causes:
    DMA, fetch and store.

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
    return dma_ps, idle_ps - store_ps - dma_ps, store_ps


class PeGemm(SerialStage):
    """The engine. `busy_ps` is the time of all steps that have begun, `free_ps` their last end.

    `stall_dma_ps`, `stall_fetch_ps` and `stall_store_ps` add up the idle times in which a product
    was submitted and no step ran.
    """

    def __init__(self, context: "PeContext", registers: RegisterFile) -> None:
        super().__init__(context)
        topology = context.topology
        self._registers = registers
        self._sets, self._accumulators = registers.sets, registers.accumulators
        self._model, self._clock = topology.pe.gemm, Clock(topology.pe.gemm.clock_ghz)
        self._full_cycles = -(-prod(topology.tile) // self._model.macs_per_cycle)
        self._step_ps = cache(self._cycles_ps)
        # By a class that computes steps in another way.
        self._is_replaced = type(self).accumulated is not PeGemm.accumulated
        # Of the step in the engine: its begin, and since when it has waited, and for what.
        self.start_ps = self.requested_ps = 0
        self.waited_for: Any = records.FOR_ENGINE
        self.free_ps = self.busy_ps = self.tiles = self.macs = 0
        self.stall_dma_ps = self.stall_fetch_ps = self.stall_store_ps = 0
        registers.accumulators.when_freed(self.begin)

    def step_ps(self, tile: Tile) -> int:
        """The duration of a step of this size, which is, or is not, the last of its output tile."""
        return self._step_ps(tile.size, tile.last)

    def accumulated(self, sums: Array | None, a: Array, b: Array) -> Array:
        """The sums in an accumulator after a step, None for zeros."""
        return accumulate(sums, a, b)

    def begin(self) -> None:
        """Begin the next step if the engine and an accumulator are free."""
        if self.is_busy or not self.waiting:
            return
        token, now_ps = self.waiting[0], self.engine.now_ps
        if token.output.accumulator is None:
            # The first step of an output tile reserves the accumulator, the others add to it.
            if not self._accumulators.filled:
                return
            token.output.take_accumulator(self._registers)
        self.waiting.popleft()
        self.is_busy = True
        self._count_stall(token, now_ps)
        self.requested_ps, self.waited_for = token.arrived_ps, records.FOR_ENGINE
        if token.arrived_ps == now_ps:
            # The engine has waited for the operands, since it was free for this product.
            self.requested_ps = max(self.free_ps, token.submitted_ps)
            self.waited_for = records.FOR_OPERAND
        self.busy_ps += token.shape.step_ps
        self.start_ps, self.free_ps = now_ps, now_ps + token.shape.step_ps
        self.ends_at(self.free_ps, token)

    def _count_stall(self, token: TileToken, now_ps: int) -> None:
        # An engine without work does not stall: count from the submission of this product on.
        idle_since_ps = max(self.free_ps, token.submitted_ps)
        if idle_since_ps == now_ps:
            return
        dma_ps, fetch_ps, store_ps = stall_before(token, idle_since_ps, now_ps)
        self.stall_dma_ps += dma_ps
        self.stall_fetch_ps += fetch_ps
        self.stall_store_ps += store_ps

    def end(self, token: TileToken) -> None:
        """A step is done."""
        output, shape, a, b = token.output, token.shape, token.a, token.b
        assert a is not None
        assert b is not None
        if not self._is_replaced:
            output.add(a, b)
        elif a.data is not None and b.data is not None:
            output.data = self.accumulated(output.data, a.data, b.data)
        records.enter_tile(
            self._log,
            "pe_gemm",
            "gemm",
            self.start_ps,
            self.free_ps,
            self._cube,
            self._pe,
            output.address,
            shape.output_bytes,
            output.checksum(),
            self.requested_ps,
            self.waited_for,
            token.step,
            output.shape,
            shape.accumulator,
            self._inputs(token),
        )
        self.tiles += 1
        self.macs += shape.macs
        self.is_busy = False
        # Free the set before the token goes on: the fetch of a later step may begin in this event.
        self._sets.free(token.registers)
        token.advance()
        self.begin()

    def _inputs(self, token: TileToken) -> tuple[Operand, ...]:
        """The operands in registers, and the sums where they begin before this step."""
        output, shape = token.output, token.shape
        begins = token.first and output.start is None
        key = (token.registers, None if begins else output.accumulator)
        inputs = shape.inputs.get(key)
        if inputs is None:
            size, registers, dtype = shape.size, self._registers, token.gemm.a.dtype.name
            inputs = (
                Operand(registers.a(token.registers), (size.m, size.k), dtype),
                Operand(registers.b(token.registers), (size.k, size.n), dtype),
            )
            if not begins:
                inputs = (*inputs, output.registers(shape.accumulator))
            shape.inputs[key] = inputs
        return inputs

    def _cycles_ps(self, size: TileSize, last: bool) -> int:  # noqa: FBT001 - the key of a cache
        model = self._model
        # Also for a partial tile: the engine runs the schedule of a full one, with idle
        # multipliers.
        if model.model == "macs":
            return self._clock.ps(self._full_cycles)
        # A cell keeps one output, so a tile larger than the array needs a pass over the whole depth
        # for each part of it.
        passes = -(-size.m // model.rows) * -(-size.n // model.cols)
        skew = model.rows + model.cols - 2 if last else 0
        return self._clock.ps(passes * (size.k + skew))
