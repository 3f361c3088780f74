"""The study of the KV cache: what it measures, keeps and shows.

The heads that a rank of the prefill has for a rank of the decode are a tensor in each layer, over
all PEs of both SIPs, and a message. So each PE sends from its own HBM slice to that of the same PE
of the other SIP, however many ranks a side has. Every element is checked.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from kernbench import DPPolicy, torch
from kernbench.oracle.theory.topology_file import TopologyFile
from kernbench.simulation import no_records, simulate
from kernbench.studies.catalogue import KvFlags
from kernbench.studies.kv_transfer.points import (
    LAYER_STEP,
    KvPoint,
    link_loads,
    plan_points,
    prefill_layer,
    sizes_of,
    sweep,
    transfer_bounds,
)
from kernbench.studies.kv_transfer.rows import KvResults, KvRow
from kernbench.studies.parameter_study import ParameterStudy, TopologyText
from kernbench.studies.preparation import map_tensors, meet
from kernbench.studies.table import RowTable
from runtime.core.device import Handle
from runtime.core.dtypes import float16
from runtime.language.value import Array
from runtime.torch.tensors.tensor import Tensor

SEED = 1
"""Seed of K and V; times do not depend on it."""
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
        side = _KvSide(point, made, sip)
        after = side.run(first=0, overlapped=False)
        return KvOutcome(after, side.run(first=point.layers, overlapped=True))

    return main


class _KvSide:
    """A SIP of one side: the heads that it sends or those that it receives, and their tensors.

    `_made` are K and V of layer 0 of the heads that it sends, `_caches` those of all layers by
    (layer, SIP on the other side), `_words` have a word of each PE.
    """

    def __init__(self, point: KvPoint, made: Array | None, sip: int) -> None:
        self._point, depth = point, point.shape.depth
        rows = len(point.moves[0].heads) * 2 * point.shape.context
        self._sends = [move for move in point.moves if move.source == sip]
        self._receives = [move for move in point.moves if move.target == sip]
        peers = [move.target for move in self._sends] + [move.source for move in self._receives]
        self._made = [
            _empty(rows, depth)
            if made is None
            else torch.from_numpy(made[move.heads].reshape(rows, depth), dp=_ALL)
            for move in self._sends
        ]
        layers = range(point.layers)
        self._caches = {(layer, peer): _empty(rows, depth) for layer in layers for peer in peers}
        self._words = {peer: _empty(rows * depth // point.work.kv, 1) for peer in peers}
        # Once for many prompts: page tables, and the queues between the SIPs.
        map_tensors(*self._made, *self._caches.values())
        for peer, word in self._words.items():
            (dist.isend if self._sends else dist.irecv)(word, peer)

    def run(self, *, first: int, overlapped: bool) -> KvTimes:
        """All layers, with numbers from `first` on."""
        layers, shape = range(self._point.layers), self._point.shape
        meet()
        began_ps = torch.ahbm.elapsed_ps()
        arriving = [
            [dist.irecv(self._caches[layer, move.source], move.source) for move in self._receives]
            for layer in layers
            if self._receives
        ]
        launches = self._run_layers(first, overlapped=overlapped) if self._sends else []
        torch.ahbm.synchronize()
        received = {
            (layer, move.source): self._caches[layer, move.source].numpy()
            for layer in layers
            for move in self._receives
            if torch.ahbm.has_data()
        }
        return KvTimes(
            began_ps=began_ps,
            layers_ps=tuple(launch.device_done_ps for launch in launches),
            arrivals_ps=tuple(max(each.handle.device_done_ps for each in of) for of in arriving),
            received={
                of: elements.reshape(-1, 2, shape.context, shape.depth)
                for of, elements in received.items()
            },
        )

    def _run_layers(self, first: int, *, overlapped: bool) -> list[Handle]:
        """The layers of a SIP of the prefill, and the sends of its heads."""
        launches, layers = list[Handle](), range(self._point.layers)
        for layer in layers:
            caches = [self._caches[layer, move.target] for move in self._sends]
            arguments = (self._point.work, first + layer, *self._made, *caches)
            launches.append(torch.launch(f"layer {layer}", prefill_layer, *arguments))
            if overlapped:
                self._send(layer)
        if not overlapped:
            for layer in layers:
                self._send(layer)
        return launches

    def _send(self, layer: int) -> None:
        # Behind the launches so far: each send is a stream of its own.
        for move in self._sends:
            dist.isend(self._caches[layer, move.target], move.target)


def _empty(count: int, columns: int) -> Tensor:
    return torch.empty(count, columns, dtype=float16, dp=_ALL)


def wrong_elements(point: KvPoint, made: Array, outcomes: Sequence[KvOutcome]) -> int:
    """Elements of K and V that the SIPs of the decode have wrong, in both runs."""
    wrong = 0
    for move in point.moves:
        for first, times in zip((0, point.layers), outcomes[move.target], strict=True):
            for layer in range(point.layers):
                exact = layer_elements(made[move.heads], first + layer)
                wrong += int(np.count_nonzero(times.received[layer, move.source] != exact))
    return wrong


def _times(of_sips: Sequence[KvTimes]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The end of each layer on its last SIP, and its last arrival, once all SIPs have begun."""
    began_ps = max(times.began_ps for times in of_sips)

    def last(columns: list[tuple[int, ...]]) -> tuple[int, ...]:
        return tuple(max(ends) - began_ps for ends in zip(*columns, strict=True))

    return (
        last([times.layers_ps for times in of_sips if times.layers_ps]),
        last([times.arrivals_ps for times in of_sips if times.arrivals_ps]),
    )


class KvTransferStudy(ParameterStudy[KvPoint, KvRow, KvResults]):
    """The KV cache of a prefill to the SIPs of its decode."""

    results_name = "kv_transfer.json"
    noun = "transfers"
    results_type = KvResults
    indent = 20
    figures_module = "kernbench.studies.kv_transfer.figures"
    table = RowTable[KvRow](
        (
            ("<SIPs", lambda row: row.pair),
            ("<order", lambda row: row.order),
            ("tokens", lambda row: f"{row.tokens:,}"),
            ("layer\n(us)", lambda row: f"{row.layer_ps / 1e6:,.2f}"),
            ("after it:\nadded (us)", lambda row: f"{row.added_after_ps / 1e6:,.2f}"),
            ("bound\n(us)", lambda row: f"{row.bound_after_ps / 1e6:,.2f}"),
            ("added /\nbound", lambda row: f"{row.added_after_ps / row.bound_after_ps:.3f}"),
            ("link\n(%)", lambda row: f"{100 * row.utilisation:.1f}"),
            ("beside it:\nadded (us)", lambda row: f"{row.added_beside_ps / 1e6:,.2f}"),
            ("bound\n(us)", lambda row: f"{row.bound_beside_ps / 1e6:,.2f}"),
            ("added /\nbound", lambda row: f"{row.added_beside_ps / row.bound_beside_ps:.3f}"),
            ("<busiest\nport", lambda row: row.bounds.binds),
            ("<elements", lambda row: row.checked),
        ),
        group=lambda row: (row.pair, row.order),
    )
    flags: KvFlags

    def points(self, topology: TopologyText) -> Sequence[KvPoint]:
        """Raises `UsageError` for flags that are no sizes, or that the machine does not divide."""
        return plan_points(topology, sizes_of(self.flags))

    def measure(self, point: KvPoint) -> KvRow:
        """Simulate one point."""
        file = TopologyFile.of(point.topology)
        made = made_elements(point) if point.has_data else None
        world = simulate(
            kv_program(point, made),
            point.sips,
            topology=point.topology,
            data=point.has_data,
            on_records=no_records,
        )
        outcomes: list[KvOutcome] = [outcome for _, outcome in sorted(world.returned.items())]
        layers_ps, after_ps = _times([outcome.after for outcome in outcomes])
        beside_layers_ps, arrivals_ps = _times([outcome.beside for outcome in outcomes])
        return KvRow(
            prefill=point.prefill,
            decode=point.decode,
            order=point.order,
            tokens=point.shape.context,
            new_tokens=point.shape.tokens,
            layers_ps=layers_ps,
            after_ps=max(after_ps),
            beside_prefill_ps=beside_layers_ps[-1],
            arrivals_ps=arrivals_ps,
            links=link_loads(file, point.moves, point.shape),
            bounds=transfer_bounds(file, point.moves, point.shape),
            wrong=None if made is None else wrong_elements(point, made, outcomes),
        )

    def kept(self, topology: TopologyText) -> Mapping[str, Any]:  # noqa: ARG002 - of all topologies
        """The sizes of the sweep."""
        return {"sizes": sizes_of(self.flags)}

    def problem(self, results: KvResults) -> str:
        """The rows of the sweep."""
        sizes = [((row.prefill, row.decode), row.order, row.tokens) for row in results.rows]
        if sizes and sizes == list(sweep(results.sizes)):
            return ""
        return "there must be a row for each of its sizes"

    def findings(self, results: KvResults) -> Iterator[str]:
        """The links that several pairs of SIPs share."""
        for pair, order in product(results.sizes.pairs, results.sizes.orders):
            row = results.of(pair, order)[0]
            for link in row.links:
                if len(link.pairs) > 1:
                    pairs = ", ".join(f"{source} to {target}" for source, target in link.pairs)
                    name = f"{row.pair} {order}"
                    yield f"{name:<{self.indent}}SIP {link.source} to {link.target}: {pairs}"

    def passed(self, results: KvResults) -> str:
        """Summary of the checks that passed."""
        checked = sum(row.wrong is not None for row in results.rows)
        farthest = max(results.rows, key=lambda row: row.added_beside_ps / row.bound_beside_ps)
        return (
            f"{len(results.rows)} transfers: every element right in {checked}, the others without "
            f"data; none below its bound, the farthest {farthest.label}, "
            f"{farthest.added_beside_ps / farthest.bound_beside_ps:.2f} times it"
        )
