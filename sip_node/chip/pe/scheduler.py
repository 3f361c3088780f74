"""The scheduler of a PE: cuts matrix products into tiles and sends them through the engines.

The way of the data of one step, A tile (m, k) times B tile (k, n), with the rate of each part:

    memory --DMA--> tile buffer in TCM --fetch port--> register set --PeGemm--> accumulator      every step
    a Value in TCM -------------------^                                            |
                    [bias, activation: PeMath]  <----------------------------------'             last step of an output tile
                                |
                           store port --> tile buffer in TCM --DMA--> memory                     out is a Ref
                                    `---> the result's Value in TCM                              out is None

There are `tile_buffers` buffers for each operand and for the result, two register sets and two accumulators, so a part works on
one tile while the next part has the one before. A step takes a buffer when it starts and gives it back when it is in
registers; the set is free when PeGemm is done with it, the accumulator when it is stored, the buffer of a result when memory
has acknowledged it. A part that finds no place ahead waits, and what is behind it waits too. Steps pass every part in their
order, whatever product they belong to, so the end of one product overlaps with the begin of the next.
"""

from collections import deque
from collections.abc import Iterator
from typing import Protocol

import numpy as np

from runtime.language.gemm import Gemm
from runtime.language.value import Ref, Value
from runtime.model.tiles import Span, TileSize
from sip_node.chip.completion import Completion
from sip_node.chip.pe.context import PeContext
from sip_node.chip.pe.dma import PeDma
from sip_node.chip.pe.fetch_store import PeFetchStore
from sip_node.chip.pe.gemm import PeGemm
from sip_node.chip.pe.math import PeMath
from sip_node.chip.pe.operand_tiles import Blocks, Source, Staged, Streamed
from sip_node.chip.pe.tile_buffers import TileBuffers
from sip_node.chip.pe.tile_dma import TileLoad, TileWrite
from sip_node.chip.pe.tile_token import OutputTile, TileStage, TileToken


class Pipeline(Protocol):
    """The engines that tiles pass."""

    dma: PeDma
    fetch_store: PeFetchStore
    gemm: PeGemm
    math: PeMath


class Composite:
    """A matrix product in flight: the tokens that are still to be made, and the output tiles that are still to come.

    It is the last stage of their routes. `engine_ps` is how much time of the GEMM engine its steps and all those submitted
    before take together.
    """

    def __init__(
        self, gemm: Gemm, tile: TileSize, target: Value | None, blocks: Blocks, submitted_ps: int
    ) -> None:
        self.gemm, self.target = gemm, target
        self.plan = gemm.plan(tile)
        self.done = Completion[None]()
        self.engine_ps = 0
        self._submitted_ps = submitted_ps
        self._sources = (
            _source(gemm.a, (tile.m, tile.k), blocks),
            _source(gemm.b, (tile.k, tile.n), blocks),
        )
        self._memory = None if gemm.out is None else Streamed(gemm.out, (tile.m, tile.n), blocks)
        self._start = None if gemm.acc is None else Staged(gemm.acc)
        self._bias = None if gemm.bias is None else Staged(_as_row(gemm.bias))
        self._to_come = self.plan.output_tiles

    def tokens(
        self, steps: tuple[TileStage, ...], results: tuple[TileStage, ...], buffers: TileBuffers
    ) -> Iterator[TileToken]:
        """One token a step, made when it has a buffer; `steps` is the route of all, `results` what the last of a tile adds."""
        whole = (*steps, *results, self)
        output: OutputTile | None = None
        for tile in self.plan:
            if output is None or tile.first:
                output = self._output(tile.rows, tile.columns)
            route = whole if tile.last else steps
            yield TileToken(
                self.gemm,
                tile,
                self._sources,
                output,
                route,
                self._submitted_ps,
                buffers.operands.take(),
            )

    def accept(self, token: TileToken) -> None:
        """An output tile is where it belongs."""
        data, target = token.output.data, self.target
        if target is not None and data is not None:
            if target.data is None:
                target.data = (
                    data if data.shape == target.shape else np.empty(target.shape, data.dtype)
                )
            target.data[slice(*token.tile.rows), slice(*token.tile.columns)] = data
        self._to_come -= 1
        if not self._to_come:
            self.done.complete(None)

    def _output(self, rows: Span, columns: Span) -> OutputTile:
        shape = (rows[1] - rows[0], columns[1] - columns[0])
        start = None if self._start is None else self._start.at(rows, columns)
        bias = None if self._bias is None else self._bias.at((0, 1), columns)
        target = None if self.target is None else self.target[slice(*rows), slice(*columns)].operand
        memory = [] if self._memory is None else self._memory.at(rows, columns)
        return OutputTile(shape, start, bias, target, memory)


class PeScheduler:
    """Products are carried out in the order of their submission."""

    def __init__(self, context: PeContext, engines: Pipeline, buffers: TileBuffers) -> None:
        self._engine, self._tile = context.engine, context.topology.tile
        self._engines, self._buffers = engines, buffers
        self._load, self._write = (
            TileLoad(context.engine, engines.dma, buffers),
            TileWrite(engines.dma, buffers),
        )
        self._tokens: deque[Iterator[TileToken]] = deque()
        self._in_flight: list[Composite] = []
        self._engine_ps = 0
        buffers.operands.when_freed(self._issue)

    @property
    def in_flight(self) -> int:
        """Products that are not complete."""
        return len(self._in_flight)

    def submit(self, gemm: Gemm, target: Value | None, blocks: Blocks) -> Completion[None]:
        """Queue a product. Complete when all of the result is in `target`, a value without data, or in memory at `gemm.out`.

        `blocks` translates a block of virtual memory.
        """
        composite = Composite(gemm, self._tile, target, blocks, self._engine.now_ps)
        self._engine_ps += sum(map(self._engines.gemm.step_ps, composite.plan))
        composite.engine_ps = self._engine_ps
        self._in_flight.append(composite)
        composite.done.then(lambda _done: self._in_flight.remove(composite))
        self._tokens.append(composite.tokens(*self._route(gemm), self._buffers))
        self._issue()
        return composite.done

    def earliest_end_ps(self, done: Completion[None]) -> int:
        """A product that was submitted is not complete before this time, whatever happens.

        The GEMM engine takes all steps in their order, one at a time, and a product is complete after its last step. So the
        engine's time for the steps that have not begun passes after the end of the one that has.
        """
        composite = next(each for each in self._in_flight if each.done is done)
        gemm, now_ps = self._engines.gemm, self._engine.now_ps
        left_ps = composite.engine_ps - gemm.busy_ps
        return now_ps if left_ps < 0 else max(now_ps, gemm.free_ps) + left_ps

    def _route(self, gemm: Gemm) -> tuple[tuple[TileStage, ...], tuple[TileStage, ...]]:
        """What every step passes, and what the last one of an output tile passes after that."""
        engines, results = self._engines, list[TileStage]()
        if gemm.bias is not None or gemm.activation is not None:
            results.append(engines.math)
        results.append(engines.fetch_store.store)
        if gemm.out is not None:
            results.append(self._write)
        return (self._load, engines.fetch_store.fetch, engines.gemm), tuple(results)

    def _issue(self) -> None:
        """Start steps as long as there is a buffer for them."""
        while self._tokens and self._buffers.operands.available:
            token = next(self._tokens[0], None)
            if token is None:
                self._tokens.popleft()
            else:
                token.advance()


def _source(operand: Value | Ref, tile: tuple[int, int], blocks: Blocks) -> Source:
    return Staged(operand) if isinstance(operand, Value) else Streamed(operand, tile, blocks)


def _as_row(bias: Value) -> Value:
    return bias if len(bias.shape) == 2 else bias[None, :]
