"""The tokens of a product: their order, and what they share."""

from types import SimpleNamespace
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from runtime.core.dtypes import float16
from runtime.language.value import Value
from runtime.model.tiles import Span, TilePlan, TileSize
from sip_node.chip.pe.compute.operand_tiles import Staged
from sip_node.chip.pe.compute.tile_buffers import FreeList
from sip_node.chip.pe.compute.tile_dma import TileLoad
from sip_node.chip.pe.compute.tile_token import OutputTile, StepShape, StepTokens
from sip_node.chip.records.op_log import OpLog
from sip_node.pdes.engine import Engine

LENGTHS = st.integers(1, 9)


def staged(rows: int, columns: int) -> Staged:
    """A matrix in TCM, in a run without data."""
    return Staged(Value((rows, columns), float16, None, 4096))


def shape_of(size: TileSize, *, last: bool) -> StepShape:
    """A shape with `last` as its time."""
    return StepShape(size=size, step_ps=int(last), macs=0, accumulator="f32", output_bytes=0)


def tokens_of(plan: TilePlan, buffers: FreeList, outputs: list[Any]) -> Any:
    """The tokens of a plan; adds its output tiles, with their spans, to `outputs`."""

    def output_of(rows: Span, columns: Span) -> OutputTile:
        output = OutputTile((rows[1] - rows[0], columns[1] - columns[0]), None, None, None, [])
        outputs.append((output, rows, columns))
        return output

    return StepTokens(
        gemm=cast("Any", None),
        plan=plan,
        shapes={
            (tile.size, tile.last): shape_of(tile.size, last=tile.last) for tile, _ in plan.kinds()
        },
        sources=(staged(plan.m, plan.k), staged(plan.k, plan.n)),
        output_of=output_of,
        routes=cast("Any", (("step",), ("step", "result"))),
        submitted_ps=7,
        buffers=buffers,
    )


def steps_of(plan: TilePlan) -> tuple[list[Any], list[Any]]:
    """(all tokens of a plan, its output tiles)."""
    outputs: list[Any] = []
    return list(tokens_of(plan, FreeList(plan.tiles), outputs)), outputs


@given(LENGTHS, LENGTHS, LENGTHS, LENGTHS, LENGTHS, LENGTHS)
def test_a_token_for_each_step_in_the_order_of_the_plan(
    m: int, k: int, n: int, tile_m: int, tile_k: int, tile_n: int
) -> None:
    plan = TilePlan(m, k, n, TileSize(tile_m, tile_k, tile_n))
    tokens, outputs = steps_of(plan)
    steps = list(plan)
    assert [token.tile for token in tokens] == steps
    assert [token.buffer for token in tokens] == list(range(len(steps)))
    assert all(
        (token.shape.size, token.shape.step_ps) == (token.tile.size, token.tile.last)
        for token in tokens
    )
    assert all(("result" in token.route) == token.tile.last for token in tokens)
    assert {(token.submitted_ps, token.loading) for token in tokens} == {(7, 2)}
    # An output tile is made with its first step, and shared by all of its depth.
    assert len(outputs) == plan.output_tiles
    spans = {id(output): spans for output, *spans in outputs}
    for token in tokens:
        assert spans[id(token.output)] == [token.tile.rows, token.tile.columns]


def test_no_buffer_is_taken_after_the_last_step() -> None:
    buffers = FreeList(2)
    plan = TilePlan(2, 2, 2, TileSize(2, 2, 2))
    tokens = tokens_of(plan, buffers, [])
    next(tokens)
    assert next(tokens, None) is None
    assert next(tokens, None) is None
    assert buffers.take() == 1


@given(LENGTHS, LENGTHS, LENGTHS, LENGTHS, LENGTHS, LENGTHS)
def test_a_step_is_loaded_with_the_tiles_of_its_spans(
    m: int, k: int, n: int, tile_m: int, tile_k: int, tile_n: int
) -> None:
    plan = TilePlan(m, k, n, TileSize(tile_m, tile_k, tile_n))
    tokens, _ = steps_of(plan)
    no_dma, no_buffers = (
        cast("Any", SimpleNamespace(read=None)),
        cast("Any", SimpleNamespace(count=0)),
    )
    load = TileLoad(Engine(), OpLog(None), no_dma, no_buffers)
    for token in tokens:
        token.route = ()
        load.accept(token)
        rows, depth, columns = token.tile.rows, token.tile.depth, token.tile.columns
        a, b = staged(m, k).at(rows, depth), staged(k, n).at(depth, columns)
        assert (token.a.inputs, token.b.inputs) == (a.inputs, b.inputs)
