"""The program of a rank: the kernels and all-reduces of a layer, and the time of each part."""

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from kernbench import DPPolicy, torch
from kernbench.benches.attention.queues import HYPERCUBE
from kernbench.benches.decoder_layer.attention import decode_attention, prefill_attention
from kernbench.benches.decoder_layer.projection import (
    project,
    project_gated,
    project_rotated,
)
from kernbench.benches.decoder_layer.shape import LayerShape, Projection
from kernbench.studies.llama70b_layer.weights import (
    LayerInputs,
    LayerWeights,
    in_panels,
    in_parts,
    in_rows,
    interleaved,
    packed,
    rotations,
)
from kernbench.studies.preparation import map_tensors
from runtime.language.value import Array

dist = torch.distributed
PARTS = ("qkv", "attention", "output", "all_reduce_1", "gate_up", "down", "all_reduce_2")
"""The parts of a layer in their order."""
_SPREAD = DPPolicy(cube="row_wise", pe="row_wise")
_EVERY_CUBE = DPPolicy(cube="replicate", pe="row_wise")


class LayerRun(NamedTuple):
    """Times of the parts in picoseconds, which add up to that of the layer; and the result
    (tokens, hidden) of a run with data.
    """

    parts_ps: tuple[int, ...]
    result: Array | None


def layer_program(
    shape: LayerShape, ranks: int, data: tuple[LayerWeights, LayerInputs] | None
) -> Callable[[int], LayerRun]:
    """The program of each rank; without `data` nothing is written, for a run without data."""

    def main(rank: int) -> LayerRun:
        torch.ahbm.set_device(rank)
        dist.init_process_group("ahbm")
        own = None
        if data is not None:
            own = data[0].of_rank(shape, rank, ranks), data[1].of_rank(rank, ranks)
        layer = _RankLayer(shape.of_rank(ranks), own)
        parts_ps = layer.run()
        if data is None:
            return LayerRun(parts_ps, None)
        return LayerRun(parts_ps, in_rows(layer.result.numpy(), shape.tokens, layer.width))

    return main


class _RankLayer:
    """The tensors of a rank. Activations are row-major, and spread evenly over all PEs."""

    def __init__(self, shape: LayerShape, data: tuple[LayerWeights, LayerInputs] | None) -> None:
        device = torch.ahbm.get_device_properties()
        self._grid = {"cubes": device.cubes, "pes": device.pes_per_cube}
        self._shape = shape
        weights, inputs = data or (None, None)
        queries = shape.heads * shape.depth
        pes = device.pes_per_cube
        self.width = shape.hidden // pes
        self._projections = (
            self._projection(shape.hidden, shape.qkv, shape.depth),
            self._projection(queries, shape.hidden, self.width),
            self._projection(shape.hidden, 2 * shape.inner, shape.inner // pes),
            self._projection(shape.inner, shape.hidden, self.width),
        )
        matrices = (
            (weights.qkv, weights.output, interleaved(weights.gate, weights.up), weights.down)
            if weights
            else (None,) * 4
        )
        self._weights = [
            _placed(each.depth * each.columns, None if matrix is None else packed(matrix, each))
            for each, matrix in zip(self._projections, matrices, strict=True)
        ]
        self._exchanges = [_float32(each.exchanged) for each in self._projections]
        hidden = shape.tokens * shape.hidden
        self._x = self._activations(hidden, inputs and in_panels(inputs.x, self.width))
        self._gains = [
            _placed(shape.hidden, weights and weights.gains[index], _EVERY_CUBE)
            for index in range(2)
        ]
        self._rotations = (
            [
                torch.from_numpy(in_parts(each, self._projections[0])[::2], dp=_SPREAD)
                for each in rotations(shape)
            ]
            if data
            else [_float32(shape.tokens * shape.qkv // 2) for _ in range(2)]
        )
        self._heads = self._activations(shape.tokens * shape.qkv)
        self._attended = self._activations(shape.tokens * queries)
        self._gated = self._activations(shape.tokens * shape.inner)
        self._middle = self._activations(hidden)
        # The all-reduce before the layer sums it.
        self.result = self._activations(hidden, inputs and np.zeros(hidden, np.float16))
        if shape.is_decode:
            cached = shape.kv_heads * shape.context * shape.depth
            self._cache = [_placed(cached, inputs and np.ravel(inputs[index])) for index in (1, 2)]
            pes, cubes = self._grid["pes"], self._grid["cubes"]
            message = 2 * shape.group + shape.group * shape.depth // pes
            self._states = _float32(cubes * pes * (pes + cubes) * message)
        else:
            copied = 2 * shape.kv_heads * shape.tokens * shape.depth
            self._copies = _placed(copied, None, _EVERY_CUBE)

    def _activations(self, count: int, elements: Array | None = None) -> torch.Tensor:
        """A tensor over all PEs; of one token over one PE of some cubes, since all PEs load it, and
        many small loads take longer than few.
        """
        if not self._shape.is_decode:
            return _placed(count, elements)
        cubes, pes = self._grid["cubes"], self._grid["pes"]
        some = tuple(range(0, cubes, max(1, cubes // pes)))
        return _placed(count, elements, DPPolicy(cube="row_wise", cubes=some, num_pes=1))

    @property
    def _tensors(self) -> list[torch.Tensor]:
        given = [self._x, *self._gains, *self._weights, *self._rotations]
        made = [self._heads, self._attended, self._gated, self._middle, self.result]
        kept = [*self._cache, self._states] if self._shape.is_decode else [self._copies]
        return [*given, *made, *kept, *self._exchanges]

    def _projection(self, depth: int, columns: int, out_width: int) -> Projection:
        return Projection(
            tokens=self._shape.tokens,
            depth=depth,
            columns=columns,
            out_width=out_width,
            **self._grid,
        )

    def run(self) -> tuple[int, ...]:
        """Compute the layer; the time of each part, from the end of the part before."""
        # The first launch maps its tensors, and the first all-reduce installs its queues.
        map_tensors(*self._tensors, queues=HYPERCUBE)
        self._reduce(self.result)
        dist.barrier()
        torch.ahbm.synchronize()
        events = [_event()]
        for launch_part in self._parts():
            launch_part()
            events.append(_event())
        torch.ahbm.synchronize()
        ends_ps = [event.recorded.device_done_ps for event in events if event.recorded]
        return tuple(end - begin for begin, end in pairwise(ends_ps))

    def _parts(self) -> tuple[Callable[[], None], ...]:
        """The launches of the parts, in the order of `PARTS`."""
        weights, exchanges, projections = self._weights, self._exchanges, self._projections
        (before, behind), middle = self._gains, self._middle
        qkv = self._x, before, weights[0], exchanges[0], self._heads, *self._rotations
        gate_up = middle, behind, weights[2], exchanges[2], self._gated
        return (
            partial(_launch, "qkv", project_rotated, *qkv, projections[0]),
            self._attend,
            partial(self._project, "output", 1, self._attended, middle, self._x),
            partial(self._reduce, middle),
            partial(_launch, "gate_up", project_gated, *gate_up, projections[2]),
            partial(self._project, "down", 3, self._gated, self.result, middle),
            partial(self._reduce, self.result),
        )

    def _attend(self) -> None:
        out = self._attended, self._shape
        if self._shape.is_decode:
            kept = *self._cache, self._states
            _launch("attention", decode_attention, self._heads, *kept, *out)
        else:
            _launch("attention", prefill_attention, self._heads, self._copies, *out)

    def _project(
        self, part: str, index: int, x: torch.Tensor, out: torch.Tensor, residual: torch.Tensor
    ) -> None:
        product = x, self._weights[index], self._exchanges[index], out, self._projections[index]
        # The all-reduce adds the residual of one rank to the sums of all.
        _launch(part, project, *product, *[residual] * (dist.get_rank() == 0))

    def _reduce(self, tensor: torch.Tensor) -> None:
        if dist.get_world_size() > 1:
            dist.all_reduce(tensor)


def _launch(name: str, kernel: Callable[..., None], *arguments: object) -> None:
    torch.launch(name, kernel, *arguments, queues=HYPERCUBE)


def _event() -> torch.ahbm.Event:
    event = torch.ahbm.Event(enable_timing=True)
    event.record()
    return event


def _placed(count: int, elements: Array | None, dp: DPPolicy = _SPREAD) -> torch.Tensor:
    """A tensor of `count` elements, which are given or left undefined."""
    if elements is None:
        return torch.empty(count, dtype=torch.float16, dp=dp)
    return torch.from_numpy(elements, dp=dp)


def _float32(count: int) -> torch.Tensor:
    return torch.empty(count, dtype=torch.float32, dp=_SPREAD)
