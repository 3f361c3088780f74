"""The steps of a matrix product, each a token on its route through the engines of a PE.

The tokens are made one by one as buffers for them become free. A step is a row, a depth and a
column by index. What steps share, the shapes and the tiles of the operands, is in lists by these
indices: a look-up by spans hashes nested tuples for every step.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from runtime.core.run_tables import NONE
from runtime.core.trace import Operand
from runtime.language.gemm import Gemm
from runtime.model.tiles import Span, Tile, TilePlan, TileSize
from sip_node.chip.pe.compute.tile_buffers import FreeList, RegisterFile
from sip_node.kernel.component import Component
from sip_node.kernel.tile_data import TileData, TileSums

if TYPE_CHECKING:
    from sip_node.chip.pe.compute.operand_tiles import Source, StreamedTile
    from sip_node.chip.pe.context import PeContext


class TileStage:
    """An engine that tokens pass."""

    def accept(self, token: "TileToken") -> None:
        """Take a token; call `token.advance()` when the work on it is done."""
        raise NotImplementedError(type(self).__name__)


class ForeignStage(TileStage):
    """An engine of a class that is none, with an `accept` of its own."""

    def __init__(self, stage: Any) -> None:
        self._stage = stage

    def accept(self, token: "TileToken") -> None:
        """Pass a token on."""
        self._stage.accept(token)


def stage_of(engine: Any) -> TileStage:
    """An engine as a stage of a route."""
    return engine if isinstance(engine, TileStage) else ForeignStage(engine)


class SerialStage(TileStage):
    """A stage that serves one token at a time, in their order.

    A derived class defines `begin`, which is called whenever the first of `waiting` may be served,
    and `end`, which is called at the time that `begin` has given to `ends_at`. It is busy between.
    """

    def __init__(self, context: "PeContext") -> None:
        coordinates = context.coordinates
        self.engine, self._log = context.engine, context.log
        self._cube, self._pe = coordinates.cube, coordinates.pe
        self.waiting: deque[TileToken] = deque()
        self.is_busy = False
        self.events = StageEvents(self)

    def accept(self, token: "TileToken") -> None:
        """Take a token."""
        token.arrived_ps = self.engine.now_ps
        self.waiting.append(token)
        self.begin()

    def ends_at(self, time_ps: int, token: "TileToken") -> None:
        """Call `end` at a time."""
        self.events.later(time_ps, 0, token)

    def begin(self) -> None:
        """Serve the next token, if there is one and all that it needs is free."""
        raise NotImplementedError(type(self).__name__)

    def end(self, token: "TileToken") -> None:
        """The work on a token is done."""
        raise NotImplementedError(type(self).__name__)


class StageEvents(Component):
    """The ends of the work of a stage."""

    def __init__(self, stage: SerialStage) -> None:
        self.join(stage.engine)
        self._stage = stage

    def proceed(self, step: int, subject: Any) -> None:  # noqa: ARG002 - there is one
        """End the work on a token."""
        token: TileToken = subject
        self._stage.end(token)


class OutputTile(TileSums):
    """A tile of the result. The steps of its depth add to the same accumulator.

    `accumulator` is None until the tile has one. `start` is the initial value of the sum, None for
    zeros; `bias` is fetched with the last step, into row `bias_row` of the registers. `data` is the
    sum, and in the end the result, with the bytes `content`. It is stored to `target`, a part of a
    value in TCM. Where that is None it is stored to the scheduler's result buffer `buffer`, the
    block `stored`, and written to `memory`.
    """

    def __init__(
        self,
        shape: tuple[int, int],
        start: TileData | None,
        bias: TileData | None,
        target: Operand | None,
        memory: list[Operand],
    ) -> None:
        super().__init__(shape)
        self.start, self.bias, self.target, self.memory = start, bias, target, memory
        self.accumulator: int | None = None
        self.address = self.bias_row = self.buffer = 0
        self.stored: Operand | None = None
        self.content = b""

    def take_accumulator(self, registers: RegisterFile) -> None:
        """Reserve a free accumulator."""
        self.accumulator = index = registers.accumulators.take()
        self.address = registers.accumulator(index)

    def registers(self, dtype: str) -> Operand:
        """The accumulator as an operand."""
        return Operand(self.address, self.shape, dtype)


class StepShape:
    """The common part of those steps of a product that have one size and are, or are not, the last
    ones of an output tile.

    `step_ps` is the time that each takes in the GEMM engine. The accumulator has `output_bytes`, of
    elements of type `accumulator`. `inputs` is what a step reads, by its register set and its
    accumulator, None for a sum that begins with it.
    """

    def __init__(
        self, *, size: TileSize, step_ps: int, macs: int, accumulator: str, output_bytes: int
    ) -> None:
        self.size, self.step_ps, self.macs = size, step_ps, macs
        self.accumulator, self.output_bytes = accumulator, output_bytes
        self.inputs: dict[tuple[int, int | None], tuple[Operand, ...]] = {}


class TileToken:
    """A step. It carries its route: a stage that has done its work calls `advance`.

    `tile_a` and `tile_b` are its operands. `a` and `b` are these once they are in TCM, `loading` is
    the number of those that are not. `buffer` is the index of the scheduler's buffers for them,
    `registers` that of the register set that they are fetched to. `index` is the number of the step
    in its product, and `step` that of the kernel which has submitted it, in a run with records.

    The times are for the stalls of the GEMM engine, which draws them: the submission of the
    product, operands in TCM, fetch port and register set free for this step, its turn there but for
    an accumulator, begin of its fetch, end of its fetch. It came to its present stage at
    `arrived_ps`.

    `StepTokens` makes it.
    """

    def __init__(self) -> None:
        self.gemm: Gemm
        self.shape: StepShape
        self.output: OutputTile
        self.route: tuple[TileStage, ...] = ()
        self.rows: Span = (0, 0)
        self.depth: Span = (0, 0)
        self.columns: Span = (0, 0)
        self.first = self.last = False
        self.tile_a: TileData | StreamedTile
        self.tile_b: TileData | StreamedTile
        self.a: TileData | None = None
        self.b: TileData | None = None
        self.loading = 2
        self.index = self.buffer = self.registers = self.passed = 0
        self.submitted_ps = self.arrived_ps = self.ready_ps = self.open_ps = 0
        self.turn_ps = self.fetch_ps = self.fetched_ps = 0
        self.step = NONE

    @property
    def tile(self) -> Tile:
        """The step as a `Tile`."""
        return Tile(self.rows, self.depth, self.columns, self.first, self.last)

    def advance(self) -> None:
        """Go to the next stage of the route, if there is one."""
        passed = self.passed
        if passed < len(self.route):
            self.passed = passed + 1
            stage = self.route[passed]
            stage.accept(self)


class TileGrid:
    """The tiles of an operand by the indices of their spans, made when they are needed."""

    def __init__(self, source: "Source", rows: list[Span], columns: list[Span]) -> None:
        self._source, self._rows, self._columns = source, rows, columns
        self._tiles: list[Any] = [None] * (len(rows) * len(columns))

    def at(self, row: int, column: int) -> Any:
        """The tile in a row and a column of the grid."""
        index = row * len(self._columns) + column
        tile = self._tiles[index]
        if tile is None:
            tile = self._tiles[index] = self._source.at(self._rows[row], self._columns[column])
        return tile


class StepTokens:
    """An iterator over the tokens of `gemm`, in the order of `plan`.

    A token has the shape of its size in `shapes`, a pair of the free `buffers`, and one of two
    `routes`: that of all steps, and that of the last step of an output tile. `output_of(rows,
    columns)` makes an output tile, which all its steps share; `output` is the latest one. `index`
    is the number of the next step. A `calendar` is marked when an output tile begins. `step` is the
    step of the kernel that has submitted the product, in a run with records.
    """

    def __init__(
        self,
        *,
        gemm: Gemm,
        plan: TilePlan,
        shapes: Mapping[tuple[TileSize, bool], StepShape],
        sources: "tuple[Source, Source]",
        output_of: Callable[[Span, Span], OutputTile],
        routes: tuple[tuple[TileStage, ...], tuple[TileStage, ...]],
        submitted_ps: int,
        buffers: FreeList,
    ) -> None:
        self.gemm, self._shapes, self.output_of = gemm, shapes, output_of
        self._steps, self._whole = routes
        self.submitted_ps, self.step, self._buffers = submitted_ps, NONE, buffers
        self.rows, self.depths, self.columns = plan.spans
        self.a = TileGrid(sources[0], self.rows, self.depths)
        self.b = TileGrid(sources[1], self.depths, self.columns)
        # By rows and columns of a step: the shapes of all depths.
        self._shapes_of: dict[tuple[int, int], list[StepShape]] = {}
        self.index, self._count = 0, plan.tiles
        self.output: OutputTile | None = None
        self._output_shapes: list[StepShape] = []
        self.calendar: Any = None

    def __iter__(self) -> Iterator[TileToken]:
        return self

    def __next__(self) -> TileToken:
        """The token of the next step; takes its buffers, one pair of which is free."""
        token = self.following()
        if token is None:
            raise StopIteration
        return token

    def following(self) -> TileToken | None:
        """The token of the next step, None after the last one."""
        if self.index == self._count:
            return None
        token = TileToken()
        token.gemm, token.submitted_ps, token.index = self.gemm, self.submitted_ps, self.index
        token.step = self.step
        depth = self.index % len(self.depths)
        token.first, token.last = depth == 0, depth == len(self.depths) - 1
        self.place(token)
        if token.first:
            self._begin_output(token.rows, token.columns)
            if self.calendar is not None:
                self.calendar.mark()
        assert self.output is not None
        token.output, token.shape = self.output, self._output_shapes[depth]
        token.route = self._whole if token.last else self._steps
        token.buffer = self._buffers.take()
        self.index += 1
        return token

    def place(self, token: TileToken) -> None:
        """Give a token the spans and the tiles of the step `token.index`."""
        depths, columns = len(self.depths), len(self.columns)
        depth, output = token.index % depths, token.index // depths
        row, column = output // columns, output % columns
        token.rows, token.depth = self.rows[row], self.depths[depth]
        token.columns = self.columns[column]
        token.tile_a, token.tile_b = self.a.at(row, depth), self.b.at(depth, column)

    def _begin_output(self, rows: Span, columns: Span) -> None:
        self.output = self.output_of(rows, columns)
        height, width = rows[1] - rows[0], columns[1] - columns[0]
        shapes = self._shapes_of.get((height, width))
        if shapes is None:
            last = self.depths[len(self.depths) - 1]
            shapes = [
                self._shapes[TileSize(height, span[1] - span[0], width), span is last]
                for span in self.depths
            ]
            self._shapes_of[height, width] = shapes
        self._output_shapes = shapes


class TokenQueue:
    """The tokens of products in the order of their submission, issued as `buffers` are free."""

    def __init__(self, buffers: FreeList) -> None:
        self._buffers = buffers
        self._waiting: deque[StepTokens] = deque()
        buffers.when_freed(self._issue)

    def add(self, tokens: StepTokens) -> None:
        """Issue the tokens of a product after those of all products before it."""
        self._waiting.append(tokens)
        self._issue()

    def _issue(self) -> None:
        while self._waiting and self._buffers.filled:
            # Made one by one: the tokens of a large product would fill memory.
            tokens = self._waiting[0]
            token = tokens.following()
            if token is None:
                self._waiting.popleft()
            else:
                token.advance()
