"""The tokens of a product, one for each step, made one by one as buffers for them become free.

A step is a row, a depth and a column by index. What steps share, the shapes and the tiles of the
operands, is in lists by these indices: a look-up by spans hashes nested tuples for every step.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from runtime.language.gemm import Gemm
from runtime.model.tiles import Span, TilePlan, TileSize
from sip_node.chip.pe.tile_buffers import FreeList
from sip_node.chip.pe.tile_token import OutputTile, StepShape, TileStage, TileToken

if TYPE_CHECKING:
    from sip_node.chip.pe.operand_tiles import Source


class StepTokens:
    """An iterator over the tokens of `gemm`, in the order of `plan`.

    A token has the shape of its size in `shapes`, a pair of the free `buffers`, and one of two
    `routes`: that of all steps, and that of the last step of an output tile. `output_of(rows,
    columns)` makes an output tile, which all its steps share; `output` is the latest one. `index`
    is the number of the next step. A `calendar` is marked when an output tile begins.
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
        self._source_a, self._source_b = sources
        self._steps, self._whole = routes
        self.submitted_ps, self._buffers = submitted_ps, buffers
        self.rows, self.depths, self.columns = plan.spans
        # In row-major order, None until the first step that needs them.
        self._tiles_a: list[Any] = [None] * (len(self.rows) * len(self.depths))
        self._tiles_b: list[Any] = [None] * (len(self.depths) * len(self.columns))
        # By rows and columns of a step: the shapes of all depths.
        self._shapes_of: dict[tuple[int, int], list[StepShape]] = {}
        self.index = self._row = self._depth = self._column = 0
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
        row, depth, column = self._row, self._depth, self._column
        if row == len(self.rows):
            return None
        token = TileToken.__new__(TileToken)
        token.rows, token.depth = self.rows[row], self.depths[depth]
        token.columns = self.columns[column]
        token.first, token.last = depth == 0, depth == len(self.depths) - 1
        if token.first:
            self._begin_output(token.rows, token.columns)
            if self.calendar is not None:
                self.calendar.mark()
        assert self.output is not None
        token.gemm, token.output = self.gemm, self.output
        token.shape = self._output_shapes[depth]
        token.route = self._whole if token.last else self._steps
        token.tile_a, token.tile_b = self.tile_a(row, depth), self.tile_b(depth, column)
        token.a = token.b = None
        token.index, token.buffer, token.loading = self.index, self._buffers.take(), 2
        token.registers = token.passed = 0
        token.submitted_ps = self.submitted_ps
        token.arrived_ps = token.ready_ps = token.open_ps = 0
        token.turn_ps = token.fetch_ps = token.fetched_ps = 0
        self.go_to(self.index + 1)
        return token

    def tile_a(self, row: int, depth: int) -> Any:
        """A tile of the first operand."""
        index = row * len(self.depths) + depth
        tile = self._tiles_a[index]
        if tile is None:
            tile = self._source_a.at(self.rows[row], self.depths[depth])
            self._tiles_a[index] = tile
        return tile

    def tile_b(self, depth: int, column: int) -> Any:
        """A tile of the second operand."""
        index = depth * len(self.columns) + column
        tile = self._tiles_b[index]
        if tile is None:
            tile = self._source_b.at(self.depths[depth], self.columns[column])
            self._tiles_b[index] = tile
        return tile

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

    def go_to(self, index: int) -> None:
        """Make `index` the number of the next step."""
        depths, columns = len(self.depths), len(self.columns)
        output = index // depths
        self.index, self._depth = index, index % depths
        self._row, self._column = output // columns, output % columns

    def relabel(self, token: TileToken) -> None:
        """Make a token in flight that of the step `token.index`, which has the same shape."""
        depths, columns = len(self.depths), len(self.columns)
        depth, output = token.index % depths, token.index // depths
        row, column = output // columns, output % columns
        token.rows, token.depth = self.rows[row], self.depths[depth]
        token.columns = self.columns[column]
        token.tile_a, token.tile_b = self.tile_a(row, depth), self.tile_b(depth, column)


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
