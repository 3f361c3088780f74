"""The tokens of a product, one for each step, made one by one as buffers for them become free."""

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from runtime.language.gemm import Gemm
from runtime.model.tiles import Span, Tile, TilePlan, TileSize
from sip_node.chip.pe.operand_tiles import Source
from sip_node.chip.pe.tile_buffers import FreeList
from sip_node.chip.pe.tile_token import OutputTile, StepShape, TileStage, TileToken
from sip_node.compiled.choice import IS_COMPILED


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

    def __iter__(self) -> Iterator[TileToken]:
        return self

    def __next__(self) -> TileToken:
        """The token of the next step; takes its buffers, one pair of which is free."""
        return next(self._tokens)

    def _made(self) -> Iterator[TileToken]:
        output: OutputTile | None = None
        for tile in self._plan:
            # The plan is depth innermost: steps of one output tile follow each other.
            if output is None or tile.first:
                output = self._output_of(tile.rows, tile.columns)
            yield TileToken(
                gemm=self._gemm,
                tile=tile,
                shape=self._shapes[tile.size, tile.last],
                sources=self._sources,
                output=output,
                route=self._whole if tile.last else self._steps,
                submitted_ps=self._submitted_ps,
                buffer=self._buffers.take(),
            )


if TYPE_CHECKING or not IS_COMPILED:
    StepTokens = ReferenceStepTokens
else:
    from sip_node.compiled.step_tokens import TokenSource

    class StepTokens(TokenSource):
        """The tokens in C; see `ReferenceStepTokens`."""

        def __init__(self, **fields: Any) -> None:
            super().__init__(Tile, **fields)
