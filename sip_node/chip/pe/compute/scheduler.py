"""The scheduler of a PE: cuts matrix products into tiles and sends these through the engines.

The path of the data of one step, tile (m, k) of A times tile (k, n) of B, with its stages:

    every step:
    memory --DMA--> buffer in TCM --fetch port--> register set --PeGemm--> accumulator
    a Value in TCM ---------------^                                            |
    after the last step of an output tile:                                     |
                    [bias, activation: PeMath]  <------------------------------'
                                |
                           store port --> buffer in TCM --DMA--> memory  (out is a Ref)
                                    `---> the result's Value in TCM      (out is None)

There are two register sets and two accumulators: double buffering, so a stage works on one tile
while the next stage has the tile before. There are `tile_buffers` buffers for each operand and for
the result: as many tiles are on their way while the memory takes its time. The resources of a step,
and when each is free again:

    resource         reserved                       released
    ---------------  -----------------------------  --------------------------------------------
    operand buffers  when the step is issued        when its operands are in registers
    register set     when its fetch begins          when PeGemm has finished the step
    accumulator      with the first step of a tile  when the tile is stored in TCM
    result buffer    when the store begins          when the memory has acknowledged all of it

A stage whose next resource is not free waits, and what is behind it waits too: that is the
back-pressure of the pipeline. The steps of all products pass every stage in one order, so the end
of one product overlaps with the start of the next.
"""

from collections.abc import Callable
from fractions import Fraction
from functools import cached_property
from math import prod

import numpy as np

from runtime.core.dtypes import DType
from runtime.core.simtime import PS_PER_NS, exact
from runtime.core.trace import Operand
from runtime.language.gemm import Gemm
from runtime.language.value import Ref, Value, row_major
from runtime.model.tiles import Span, Tile, TileSize
from runtime.model.topology import Topology
from sip_node.chip.completion import Completion
from sip_node.chip.fast_forward import ProductParts
from sip_node.chip.pe.compute.fetch_store import PeFetchStore
from sip_node.chip.pe.compute.gemm import PeGemm
from sip_node.chip.pe.compute.math import PeMath
from sip_node.chip.pe.compute.operand_tiles import Blocks, Source, Staged, Streamed
from sip_node.chip.pe.compute.tile_buffers import RegisterFile, TileBuffers
from sip_node.chip.pe.compute.tile_dma import TileLoad, TileWrite
from sip_node.chip.pe.compute.tile_token import (
    OutputTile,
    StepShape,
    StepTokens,
    TileStage,
    TileToken,
    TokenQueue,
    stage_of,
)
from sip_node.chip.pe.context import PeContext
from sip_node.chip.pe.dma import PeDma


class ProductForm:
    """Products of one size on a PE: their `plan`, the `shapes` of their steps by size and whether
    it is the last one of a tile, and the time `steps_ps` of all steps in the GEMM engine.
    """

    def __init__(
        self, gemm: Gemm, tile: TileSize, shape_of: Callable[[Gemm, Tile], StepShape]
    ) -> None:
        self.plan = gemm.plan(tile)
        kinds = self.plan.kinds()
        self.shapes = {(tile.size, tile.last): shape_of(gemm, tile) for tile, _ in kinds}
        self.steps_ps = sum(self.shapes[tile.size, tile.last].step_ps * n for tile, n in kinds)
        self._loads = [
            (_loaded_bytes(gemm, tile.size), self.shapes[tile.size, tile.last].step_ps)
            for tile, _ in kinds
        ]

    def least_load_ps(self, left_ps: int, issued: int, byte_ps: Fraction) -> int:
        """The least time in which the operands still to be loaded come at `byte_ps` a byte.

        The engine takes `left_ps` for the steps that have not begun, of which at most `issued`
        have been issued: their operands may have come already.
        """
        # The steps of the kind with the fewest bytes for their time need the fewest bytes.
        nbytes, step_ps = self._lightest
        largest = max(nbytes for nbytes, _ in self._loads)
        to_load = min(left_ps, self.steps_ps) * nbytes // step_ps - issued * largest
        return max(to_load, 0) * byte_ps.numerator // byte_ps.denominator

    @cached_property
    def _lightest(self) -> tuple[int, int]:
        return min(self._loads, key=lambda load: Fraction(*load))


class Composite:
    """A matrix product in flight: the tokens still to be issued, the output tiles still to come.

    It is the last stage of their routes. `engine_ps` is the time in the GEMM engine of its steps
    and those of all products submitted before. It does not end before `least_end_ps`.
    """

    def __init__(
        self,
        gemm: Gemm,
        form: ProductForm,
        target: Value | None,
        blocks: Blocks,
        submitted_ps: int,
    ) -> None:
        self.gemm, self.form, self.target = gemm, form, target
        self.plan = plan = form.plan
        tile = plan.tile
        self.done = Completion[None]()
        self.engine_ps = self.least_end_ps = 0
        self._submitted_ps = submitted_ps
        self._sources = (
            _source(gemm.a, (tile.m, tile.k), blocks),
            _source(gemm.b, (tile.k, tile.n), blocks),
        )
        self._memory = None if gemm.out is None else Streamed(gemm.out, (tile.m, tile.n), blocks)
        self._start = None if gemm.acc is None else Staged(gemm.acc)
        self._bias = None if gemm.bias is None else Staged(_as_row(gemm.bias))
        self.tiles_to_come = plan.output_tiles

    def tokens(
        self, steps: tuple[TileStage, ...], results: tuple[TileStage, ...], buffers: TileBuffers
    ) -> StepTokens:
        """The tokens, one a step. The caller takes the next one when a pair of buffers is free.

        `steps` is the route of all tokens, `results` what the last step of an output tile adds.
        """
        return StepTokens(
            gemm=self.gemm,
            plan=self.plan,
            shapes=self.form.shapes,
            sources=self._sources,
            output_of=self._output,
            routes=(steps, (*steps, *results, stage_of(self))),
            submitted_ps=self._submitted_ps,
            buffers=buffers.operands,
        )

    def blocks(self) -> tuple[list[Operand], list[Operand]]:
        """The blocks of memory from which it streams operands, and those of its result."""
        read = [each.blocks() for each in self._sources if isinstance(each, Streamed)]
        written = [] if self._memory is None else self._memory.blocks()
        return [block for blocks in read for block in blocks], written

    def accept(self, token: TileToken) -> None:
        """An output tile is complete, in TCM or in memory."""
        data, target = token.output.data, self.target
        if target is not None and data is not None:
            if target.data is None:
                # Make the array with the first tile; no copy where that is all of the result.
                target.data = (
                    data if data.shape == target.shape else np.empty(target.shape, data.dtype)
                )
            target.data[slice(*token.tile.rows), slice(*token.tile.columns)] = data
        self.tiles_to_come -= 1
        if not self.tiles_to_come:
            self.done.complete(None)

    def _output(self, rows: Span, columns: Span) -> OutputTile:
        return OutputTile(
            shape=(rows[1] - rows[0], columns[1] - columns[0]),
            start=None if self._start is None else self._start.at(rows, columns),
            bias=None if self._bias is None else self._bias.at((0, 1), columns),
            target=None if self.target is None else _tile_of(self.target, rows, columns),
            memory=[] if self._memory is None else self._memory.at(rows, columns).pieces,
        )


class PeScheduler:
    """Carries out products in the order of their submission."""

    def __init__(
        self,
        context: PeContext,
        dma: PeDma,
        fetch_store: PeFetchStore,
        gemm: PeGemm,
        math: PeMath,
        buffers: TileBuffers,
    ) -> None:
        self._engine, self._tile = context.engine, context.topology.tile
        self._log = log = context.log
        self._fetch_store, self._gemm, self._math = fetch_store, gemm, math
        self._buffers = buffers
        self._load = TileLoad(context.engine, log, dma, buffers)
        self._write = TileWrite(log, dma, buffers)
        self._parts = ProductParts(
            topology=context.topology,
            log=log,
            locate=context.locate,
            fabric=context.fabric,
            dma=dma,
            load=self._load,
            fetch=fetch_store.fetch,
            gemm=gemm,
            store=fetch_store.store,
            buffers=buffers,
        )
        self._forward = context.forward
        self._tokens = TokenQueue(buffers.operands)
        self._in_flight: list[Composite] = []
        self.engine_ps = 0
        """The time in the engine of all products that were submitted."""
        # A step that is issued has a pair of buffers, and then a register set until it has ended.
        self._most_issued = buffers.count + RegisterFile.SETS
        self._byte_ps = _byte_ps(context.topology)
        # What the steps of all products have in common, by size, place in the sum, and type.
        self._shapes: dict[tuple[TileSize, bool, DType], StepShape] = {}
        # What products have in common, by sizes, type, and which operands are in memory.
        self._forms: dict[tuple[object, ...], ProductForm] = {}

    @property
    def in_flight(self) -> int:
        """The number of products that are not complete."""
        return len(self._in_flight)

    def submit(self, gemm: Gemm, target: Value | None, blocks: Blocks) -> Completion[None]:
        """Queue a product; complete when all of the result is in `target` or in `gemm.out`.

        `target` is a value without data, or None where the result goes to memory. `blocks`
        translates blocks of virtual memory.
        """
        composite = Composite(
            gemm=gemm,
            form=self._form_of(gemm),
            target=target,
            blocks=blocks,
            submitted_ps=self._engine.now_ps,
        )
        # The engine takes products in order, so its time for all of them bounds the end of the last
        # one.
        self.engine_ps += composite.form.steps_ps
        composite.engine_ps = self.engine_ps
        self._in_flight.append(composite)
        composite.done.then(lambda _done: self._in_flight.remove(composite))
        tokens = composite.tokens(*self._route(gemm), self._buffers)
        tokens.step = self._log.step
        if self._forward is not None:
            self._forward.submitted(self._parts, composite, tokens)
        self._tokens.add(tokens)
        return composite.done

    def earliest_end_ps(self, done: Completion[None]) -> int:
        """A lower bound for the end of a product that was submitted.

        The GEMM engine takes all steps in their order, one at a time, and a product is complete
        after its last step. So the engine's time for the steps that have not begun passes after
        the end of the step that has. Meanwhile the operands of all steps that are not issued
        cross the link from the router to the PE. Other SIPs may simulate that far ahead.
        """
        composite = next(each for each in self._in_flight if each.done is done)
        gemm, now_ps = self._gemm, self._engine.now_ps
        # Both count from the start of the run: time of all steps up to the end of this product,
        # less the time of the steps that have begun.
        left_ps = composite.engine_ps - gemm.busy_ps
        if left_ps < 0:
            return now_ps
        load_ps = composite.form.least_load_ps(left_ps, self._most_issued, self._byte_ps)
        end_ps = max(max(now_ps, gemm.free_ps) + left_ps, now_ps + load_ps)
        # Steps that begin shortly one after the other lower the bound of the loads.
        composite.least_end_ps = max(composite.least_end_ps, end_ps)
        return composite.least_end_ps

    def _form_of(self, gemm: Gemm) -> ProductForm:
        a, b = gemm.a, gemm.b
        key = (*a.shape, b.shape[1], a.dtype.name, type(a) is Ref, type(b) is Ref)
        form = self._forms.get(key)
        if form is None:
            form = self._forms[key] = ProductForm(gemm, self._tile, self._shape_of)
        return form

    def _shape_of(self, gemm: Gemm, tile: Tile) -> StepShape:
        key = (tile.size, tile.last, gemm.a.dtype)
        shape = self._shapes.get(key)
        if shape is None:
            shape = self._shapes[key] = _step_shape(tile, self._gemm.step_ps(tile), gemm)
        return shape

    def _route(self, gemm: Gemm) -> tuple[tuple[TileStage, ...], tuple[TileStage, ...]]:
        """The stages of every step, and those that the last step of an output tile adds."""
        # Bias and activation work on the accumulator, so that the result is rounded once, at its
        # store.
        results = list[TileStage]()
        if gemm.bias is not None or gemm.activation is not None:
            results.append(stage_of(self._math))
        results.append(self._fetch_store.store)
        if gemm.out is not None:
            results.append(self._write)
        steps = (self._load, self._fetch_store.fetch, stage_of(self._gemm))
        return steps, tuple(results)


def _byte_ps(topology: Topology) -> Fraction:
    """The time of a byte on the link from the router to a PE; 0 where `impl:` replaces its class.

    Or that of an engine which may not use the link.
    """
    if any(topology.impl.of(kind) != kind for kind in ("router", "pe", "pe_dma")):
        return Fraction(0)
    # Operands from every memory pass this link, so no product loads faster than it carries.
    return PS_PER_NS / exact(topology.pe.to_router_bw_gbs)


def _loaded_bytes(gemm: Gemm, size: TileSize) -> int:
    """The bytes that a step of this size loads from memory."""
    loads = ((gemm.a, size.m * size.k), (gemm.b, size.k * size.n))
    return sum(
        elements * operand.dtype.itemsize for operand, elements in loads if isinstance(operand, Ref)
    )


def _step_shape(tile: Tile, step_ps: int, gemm: Gemm) -> StepShape:
    size, accumulator = tile.size, gemm.accumulator
    return StepShape(
        size=size,
        step_ps=step_ps,
        macs=prod(size),
        accumulator=accumulator.name,
        output_bytes=size.m * size.n * accumulator.itemsize,
    )


def _source(operand: Value | Ref, tile: tuple[int, int], blocks: Blocks) -> Source:
    return Staged(operand) if isinstance(operand, Value) else Streamed(operand, tile, blocks)


def _tile_of(target: Value, rows: Span, columns: Span) -> Operand:
    """The operand of a view of the target, without the view: there is one for each tile."""
    strides, dtype = target.strides, target.dtype
    shape = (rows[1] - rows[0], columns[1] - columns[0])
    first = rows[0] * strides[0] + columns[0] * strides[1]
    address = target.address + first * dtype.itemsize
    return Operand(address, shape, dtype.name, () if strides == row_major(shape) else strides)


def _as_row(bias: Value) -> Value:
    return bias if len(bias.shape) == 2 else bias[None, :]
