"""The tokens of a product, one for each step, made one by one as buffers for them become free."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from runtime.core.compiled.choice import IS_COMPILED
from runtime.language.gemm import Gemm
from runtime.model.tiles import Span, Tile, TilePlan, TileSize
from sip_node.chip.pe.operand_tiles import Source
from sip_node.chip.pe.tile_buffers import FreeList
from sip_node.chip.pe.tile_token import OutputTile, ReferenceTileToken, StepShape, TileStage


class ReferenceStepTokens:
    """An iterator over the tokens of `gemm`, in the order of `plan`.

    A token has the shape of its size in `shapes`, a pair of the free `buffers`, and one of two
    `routes`: that of all steps, and that of the last step of an output tile. `output_of(rows,
    columns)` makes an output tile, which all its steps share.
    """

    def __init__(
        self,
        *,
        gemm: Gemm,
        plan: TilePlan,
        shapes: Mapping[tuple[TileSize, bool], StepShape],
        sources: tuple[Source, Source],
        output_of: Callable[[Span, Span], OutputTile],
        routes: tuple[tuple[TileStage, ...], tuple[TileStage, ...]],
        submitted_ps: int,
        buffers: FreeList,
    ) -> None:
        self._gemm, self._plan, self._shapes, self._sources = gemm, plan, shapes, sources
        self._output_of, self._buffers = output_of, buffers
        self._steps, self._whole = routes
        self._submitted_ps = submitted_ps
        self._tokens = self._made()

    def __iter__(self) -> Iterator[ReferenceTileToken]:
        return self

    def __next__(self) -> ReferenceTileToken:
        """The token of the next step; takes its buffers, one pair of which is free."""
        return next(self._tokens)

    def _made(self) -> Iterator[ReferenceTileToken]:
        output: OutputTile | None = None
        for tile in self._plan:
            # The plan is depth innermost: steps of one output tile follow each other.
            if output is None or tile.first:
                output = self._output_of(tile.rows, tile.columns)
            yield ReferenceTileToken(
                gemm=self._gemm,
                tile=tile,
                shape=self._shapes[tile.size, tile.last],
                sources=self._sources,
                output=output,
                route=self._whole if tile.last else self._steps,
                submitted_ps=self._submitted_ps,
                buffer=self._buffers.take(),
            )


class ReferenceTokenQueue:
    """The tokens of products in the order of their submission, issued as `buffers` are free."""

    def __init__(self, buffers: FreeList) -> None:
        self._buffers = buffers
        self._waiting: deque[ReferenceStepTokens] = deque()
        buffers.when_freed(self._issue)

    def add(self, tokens: ReferenceStepTokens) -> None:
        """Issue the tokens of a product after those of all products before it."""
        self._waiting.append(tokens)
        self._issue()

    def _issue(self) -> None:
        while self._waiting and self._buffers.available:
            # Made one by one: the tokens of a large product would fill memory.
            token = next(self._waiting[0], None)
            if token is None:
                self._waiting.popleft()
            else:
                token.advance()


if TYPE_CHECKING or not IS_COMPILED:
    StepTokens = ReferenceStepTokens
    TokenQueue = ReferenceTokenQueue
else:
    from sip_node.compiled.step_tokens import (
        TokenQueue,  # noqa: F401 - the name of this module
        TokenSource,
    )

    class StepTokens(TokenSource):
        """The tokens in C; see `ReferenceStepTokens`."""

        def __init__(self, **fields: Any) -> None:
            super().__init__(Tile, **fields)
