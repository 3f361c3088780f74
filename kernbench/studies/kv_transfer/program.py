"""The rank program: layers on the SIPs of the prefill, their heads to the SIPs of the decode.

The heads that a rank of the prefill has for a rank of the decode are a tensor in each layer, over
all PEs of both SIPs, and a message. So each PE sends from its own HBM slice to that of the same PE
of the other SIP, however many ranks a side has.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from kernbench import DPPolicy, torch
from kernbench.studies.kv_transfer.computation import LAYER_STEP, prefill_layer
from kernbench.studies.kv_transfer.points import KvPoint
from kernbench.studies.kv_transfer.sides import HeadsMove
from kernbench.studies.preparation import map_tensors, meet
from runtime.core.device import Handle
from runtime.core.dtypes import float16
from runtime.language.value import Array
from runtime.torch.distributed.work import Work
from runtime.torch.tensors.tensor import Tensor

SEED = 1
"""Of K and V. Times do not depend on them."""
_ALL = DPPolicy(cube="row_wise", pe="row_wise")
_LARGEST = 8
dist = torch.distributed


class KvTimes(NamedTuple):
    """Simulated times on a SIP: of the start, of the end of each layer, and of the last element of
    each layer that has arrived; and what has arrived, in a run with data: (heads, K and V, tokens,
    depth) by layer and sender.
    """

    began_ps: int
    layers_ps: tuple[int, ...]
    arrivals_ps: tuple[int, ...]
    received: Mapping[tuple[int, int], Array]


class KvOutcome(NamedTuple):
    """The transfer after the prefill, and beside it."""

    after: KvTimes
    beside: KvTimes


class _Share(NamedTuple):
    """What a SIP sends, and what it receives; one of both is empty."""

    sends: tuple[HeadsMove, ...]
    receives: tuple[HeadsMove, ...]

    @classmethod
    def of(cls, point: KvPoint, sip: int) -> "_Share":
        """Of a SIP."""
        return cls(
            tuple(move for move in point.moves if move.source == sip),
            tuple(move for move in point.moves if move.target == sip),
        )

    @property
    def peers(self) -> list[int]:
        """The SIPs with which it shares heads."""
        return [move.target for move in self.sends] + [move.source for move in self.receives]


class _KvTensors(NamedTuple):
    """The tensors of a SIP by the SIP with which it shares the heads: K and V of layer 0, those of
    all layers by (layer, SIP), and a word of each PE.
    """

    made: dict[int, Tensor]
    caches: dict[tuple[int, int], Tensor]
    words: dict[int, Tensor]


def made_elements(point: KvPoint) -> Array:
    """K and V of layer 0, (heads, 2, tokens, depth): whole numbers, so that each layer is exact.

    They are the same in every process.
    """
    sizes, rng = point.shape, np.random.default_rng([SEED, point.shape.context])
    shape = sizes.kv_heads, 2, sizes.context, sizes.depth
    return rng.integers(0, _LARGEST, shape, np.int16).astype(np.float16)


def layer_elements(made: Array, layer: int) -> Array:
    """K and V of a layer."""
    return made + np.float16(LAYER_STEP * layer)


def kv_program(point: KvPoint, made: Array | None) -> Callable[[int], KvOutcome]:
    """The program of each SIP; without `made` nothing is written, for a run without data.

    The layers are computed and sent twice, with other numbers: first the heads are sent when all
    layers are complete, then those of each layer when it is complete.
    """

    def main(sip: int) -> KvOutcome:
        torch.ahbm.set_device(sip)
        dist.init_process_group("ahbm")
        side = _Share.of(point, sip)
        placed = _placed(point, made, side)
        _prepare(placed, side)
        after = _run(point, placed, side, first=0, overlapped=False)
        return KvOutcome(after, _run(point, placed, side, first=point.layers, overlapped=True))

    return main


def _run(
    point: KvPoint, placed: _KvTensors, side: _Share, *, first: int, overlapped: bool
) -> KvTimes:
    """All layers, with numbers from `first` on."""
    meet()
    began_ps = torch.ahbm.elapsed_ps()
    arriving = _post_receives(point, placed, side)
    launches = _run_layers(point, placed, side, first=first, overlapped=overlapped)
    torch.ahbm.synchronize()
    shape = -1, 2, point.shape.context, point.shape.depth
    return KvTimes(
        began_ps=began_ps,
        layers_ps=tuple(launch.device_done_ps for launch in launches),
        arrivals_ps=tuple(max(work.handle.device_done_ps for work in works) for works in arriving),
        received={
            (layer, move.source): placed.caches[layer, move.source].numpy().reshape(shape)
            for layer in range(point.layers)
            for move in side.receives
            if torch.ahbm.has_data()
        },
    )


def _placed(point: KvPoint, made: Array | None, side: _Share) -> _KvTensors:
    depth, heads = point.shape.depth, len(point.moves[0].heads)
    rows = heads * 2 * point.shape.context

    def empty(count: int, columns: int) -> Tensor:
        return torch.empty(count, columns, dtype=float16, dp=_ALL)

    return _KvTensors(
        made={
            move.target: empty(rows, depth)
            if made is None
            else torch.from_numpy(made[move.heads].reshape(rows, depth), dp=_ALL)
            for move in side.sends
        },
        caches={
            (layer, peer): empty(rows, depth)
            for layer in range(point.layers)
            for peer in side.peers
        },
        words={peer: empty(rows * depth // point.work.kv, 1) for peer in side.peers},
    )


def _prepare(placed: _KvTensors, side: _Share) -> None:
    """What happens once for many prompts: page tables, and the queues between the SIPs."""
    map_tensors(*placed.made.values(), *placed.caches.values())
    for peer, word in placed.words.items():
        if side.sends:
            dist.isend(word, peer)
        else:
            dist.irecv(word, peer)


def _post_receives(point: KvPoint, placed: _KvTensors, side: _Share) -> list[list[Work]]:
    if not side.receives:
        return []
    return [
        [dist.irecv(placed.caches[layer, move.source], move.source) for move in side.receives]
        for layer in range(point.layers)
    ]


def _run_layers(
    point: KvPoint, placed: _KvTensors, side: _Share, *, first: int, overlapped: bool
) -> list[Handle]:
    """The layers of a SIP of the prefill, and the sends of its heads; nothing on other SIPs."""
    launches = list[Handle]()
    if not side.sends:
        return launches

    def send(layer: int) -> None:
        # Behind the launches so far: each send is a stream of its own.
        for move in side.sends:
            dist.isend(placed.caches[layer, move.target], move.target)

    for layer in range(point.layers):
        caches = [placed.caches[layer, move.target] for move in side.sends]
        arguments = (point.work, first + layer, *placed.made.values(), *caches)
        launches.append(torch.launch(f"layer {layer}", prefill_layer, *arguments))
        if overlapped:
            send(layer)
    if not overlapped:
        for layer in range(point.layers):
            send(layer)
    return launches
