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


class TileGrid:
    """The tiles of an operand by the indices of their spans, made when they are needed."""

    def __init__(self, source: "Source", rows: list[Span], columns: list[Span]) -> None:
        self._source, self._rows, self._columns = source, rows, columns
        self._tiles: list[Any] = [None] * (len(rows) * len(columns))

    def at(self, row: int, column: int) -> Any:
        """One tile."""
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
        self._steps, self._whole = routes
        self.submitted_ps, self._buffers = submitted_ps, buffers
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
