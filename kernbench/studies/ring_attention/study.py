"""The study of ring attention: what it measures, keeps and shows.

Transfers to the next SIP run beside the kernels of a step; results are checked against float64.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from kernbench import DPPolicy, tl, torch
from kernbench.benches.attention.context_parallel import RingStep, ring_step
from kernbench.benches.attention.reference import attention
from kernbench.oracle.theory.topology_file import TopologyFile
from kernbench.simulation import no_records, simulate
from kernbench.studies.catalogue import RingFlags, rising_numbers
from kernbench.studies.parameter_study import ParameterStudy, TopologyText
from kernbench.studies.preparation import map_tensors
from kernbench.studies.ring_attention.rows import (
    DEPTH,
    MOST_TOKENS,
    RANKS,
    RingPoint,
    RingResults,
    RingRow,
    RingSizes,
    plan_points,
    ring_bounds,
    sweep,
)
from kernbench.studies.table import RowTable, shown_error
from runtime.core.device import Handle
from runtime.core.dtypes import float16, float32
from runtime.device.collectives.work import Work
from runtime.language.value import Array
from runtime.torch.tensors.tensor import Tensor

SEED = 1
"""Seed of the tensors; times do not depend on it."""
dist = torch.distributed


class RingTensors(NamedTuple):
    """q, k and v of the layer, (heads, tokens, depth) each."""

    q: Array
    k: Array
    v: Array


class RingOutcome(NamedTuple):
    """The result of a rank, (heads, tokens of the rank, depth), None in a run without data.

    The first command was given at `began_ps`, the last kernel ended at `ended_ps`; kernels ran for
    `kernels_ps`.
    """

    result: Array | None
    began_ps: int
    ended_ps: int
    kernels_ps: int


class _Placed(NamedTuple):
    """The tensors of a rank, each with the part of head h on PE h of cube 0; two buffers of keys
    and values.
    """

    q: Tensor
    kv: tuple[Tensor, Tensor]
    state: Tensor
    out: Tensor


def ring_tensors(point: RingPoint) -> RingTensors:
    """Uniform in [-1, 1), rounded to float16, the same in every process."""
    rng = np.random.default_rng([SEED, point.heads, point.parts.tokens])
    shape = point.heads, point.parts.tokens, point.shape.depth
    # Elements are drawn in float32: half the time of float64.
    return RingTensors(
        *((2 * rng.random(shape, np.float32) - 1).astype(np.float16) for _ in range(3))
    )


def ring_program(point: RingPoint, tensors: RingTensors | None) -> Callable[[int], RingOutcome]:
    """The rank program; without `tensors` nothing is written, for a run without data."""

    def main(rank: int) -> RingOutcome:
        torch.ahbm.set_device(rank)
        dist.init_process_group("ahbm")
        placed = _placed(point, rank, tensors)
        _prepare(point, rank, placed)
        began_ps = torch.ahbm.elapsed_ps()
        launches = _steps(point, rank, placed)
        torch.ahbm.synchronize()
        shape = point.heads, point.parts.rank_tokens, point.shape.depth
        return RingOutcome(
            result=None if tensors is None else placed.out.numpy().reshape(shape),
            began_ps=began_ps,
            ended_ps=max(launch.device_done_ps for launch in launches),
            kernels_ps=sum(launch.pe_exec_ps for launch in launches),
        )

    return main


def _placed(point: RingPoint, rank: int, tensors: RingTensors | None) -> _Placed:
    parts, (_, _, depth) = point.parts, point.shape
    rows = point.heads * parts.rank_tokens
    by_head = DPPolicy(pe="row_wise", num_cubes=1, num_pes=point.heads)
    spare = torch.empty(2 * rows, depth, dtype=float16, dp=by_head)
    if tensors is None:
        q = torch.empty(rows, depth, dtype=float16, dp=by_head)
        kv = torch.empty(2 * rows, depth, dtype=float16, dp=by_head)
    else:
        own = parts.positions(rank)
        both = np.stack([tensors.k[:, own], tensors.v[:, own]], axis=1)
        q = torch.from_numpy(tensors.q[:, own].reshape(rows, depth), dp=by_head)
        kv = torch.from_numpy(both.reshape(2 * rows, depth), dp=by_head)
    state = torch.empty(rows, depth + 2, dtype=float32, dp=by_head)
    return _Placed(q, (kv, spare), state, torch.empty(rows, depth, dtype=float16, dp=by_head))


def _prepare(point: RingPoint, rank: int, placed: _Placed) -> None:
    """Set up, once for many layers, the page tables and the queues to the neighbours."""
    map_tensors(placed.q, *placed.kv, placed.state, placed.out)
    words = [torch.empty(point.heads, 1, dp=placed.q.policy) for _ in range(2)]
    _exchange(point, rank, words[0], words[1])
    torch.ahbm.synchronize()


def _exchange(point: RingPoint, rank: int, source: Tensor, target: Tensor) -> list[Work]:
    """Send to the next rank and receive from the previous one."""
    ranks = point.parts.ranks
    return dist.batch_isend_irecv(
        [
            dist.P2POp(dist.isend, source, (rank + 1) % ranks),
            dist.P2POp(dist.irecv, target, (rank - 1) % ranks),
        ]
    )


def _steps(point: RingPoint, rank: int, placed: _Placed) -> list[Handle]:
    """The launches of all steps."""
    launches, arriving, ranks = list[Handle](), list[Work](), point.parts.ranks
    for number in range(ranks):
        here, there = placed.kv[number % 2], placed.kv[1 - number % 2]
        # The keys of this step, and the end of the send which read the other buffer.
        for work in arriving:
            work.wait()
        # Posted before the launch: they wait for the kernel before it, which read the other buffer.
        if number < ranks - 1:
            arriving = _exchange(point, rank, here, there)
        step = RingStep(point.parts, rank, number)
        if step.blocks(point.shape.rows):
            # A pointer, not the tensor: the launch would wait until the tensor is sent.
            kv = tl.Pointer(here.address, here.dtype)
            arguments = (placed.q, kv, placed.state, placed.out, step, point.shape)
            launches.append(torch.launch(f"step {number}", ring_step, *arguments))
    return launches


def largest_error(
    point: RingPoint, tensors: RingTensors, outcomes: Mapping[int, RingOutcome]
) -> float:
    """The largest absolute difference of all ranks from dense attention in float64."""
    computed = np.full(tensors.q.shape, np.nan)
    for rank, outcome in outcomes.items():
        assert outcome.result is not None, "a run with data"
        computed[:, point.parts.positions(rank)] = outcome.result
    causal = point.parts.is_causal
    exact = [attention(*head, causal=causal) for head in zip(*tensors, strict=True)]
    return float(np.abs(computed - np.stack(exact)).max())


class RingAttentionStudy(ParameterStudy[RingPoint, RingRow, RingResults]):
    """Ring attention; the flags are lists of numbers, separated by commas."""

    results_name = "ring_attention.json"
    noun = "layers"
    results_type = RingResults
    figures_module = "kernbench.studies.ring_attention.figures"
    table = RowTable[RingRow](
        (
            ("<division", lambda row: row.division.words),
            ("tokens", lambda row: f"{row.tokens:,}"),
            ("SIPs", lambda row: str(row.sips)),
            ("time\n(us)", lambda row: f"{row.layer_ps / 1e6:,.2f}"),
            ("kernels\n(us)", lambda row: f"{max(row.kernels_ps) / 1e6:,.2f}"),
            ("least of\na SIP", lambda row: f"{min(row.kernels_ps) / 1e6:,.2f}"),
            ("exposed\n(us)", lambda row: f"{row.exposed_ps / 1e6:,.2f}"),
            ("bound\n(us)", lambda row: f"{row.bounds.bound_ps / 1e6:,.2f}"),
            ("<bound\nby", lambda row: row.bounds.binds),
            ("bound /\ntime (%)", lambda row: f"{100 * row.share:.1f}"),
            ("<error\nto float64", lambda row: shown_error(row.error)),
        ),
        group=lambda row: (row.division, row.tokens),
    )
    flags: RingFlags

    @property
    def sizes(self) -> RingSizes:
        """The sizes; raises `UsageError` for flags that are no such lists."""
        return RingSizes(
            heads=self.flags.heads,
            depth=DEPTH,
            tokens=rising_numbers("--tokens", self.flags.tokens, 1, MOST_TOKENS),
            sips=rising_numbers("--sips-list", self.flags.sips_list, *RANKS),
        )

    def points(self, topology: TopologyText) -> Sequence[RingPoint]:
        """Raises `UsageError` for sizes that the chunks or the machine do not divide."""
        return plan_points(topology, self.sizes)

    def measure(self, point: RingPoint) -> RingRow:
        """Simulate one point."""
        tensors = ring_tensors(point) if point.has_data else None
        world = simulate(
            ring_program(point, tensors),
            point.parts.ranks,
            topology=point.topology,
            data=point.has_data,
            on_records=no_records,
        )
        outcomes: list[RingOutcome] = [outcome for _, outcome in sorted(world.returned.items())]
        last = max(outcomes, key=lambda outcome: outcome.ended_ps)
        layer_ps = last.ended_ps - min(outcome.began_ps for outcome in outcomes)
        return RingRow(
            division=point.division,
            sips=point.parts.ranks,
            tokens=point.parts.tokens,
            layer_ps=layer_ps,
            kernels_ps=tuple(outcome.kernels_ps for outcome in outcomes),
            exposed_ps=layer_ps - last.kernels_ps,
            bounds=ring_bounds(
                TopologyFile.of(point.topology), point.parts, point.heads, point.shape.depth
            ),
            error=None if tensors is None else largest_error(point, tensors, world.returned),
        )

    def kept(self, topology: TopologyText) -> Mapping[str, Any]:  # noqa: ARG002 - of all topologies
        """The sizes of the sweep."""
        return {"sizes": self.sizes}

    def problem(self, results: RingResults) -> str:
        """The rows of the sweep."""
        sizes = [(row.division, row.tokens, row.sips) for row in results.rows]
        if sizes and sizes == list(sweep(results.sizes)):
            return ""
        return "there must be a row for each of its sizes"

    def passed(self, results: RingResults) -> str:
        """Summary of the checks that passed, with the layer nearest to its bound."""
        checked = sum(row.error is not None for row in results.rows)
        nearest = max(results.rows, key=lambda row: row.share)
        return (
            f"{len(results.rows)} layers: {checked} right against float64, the others without "
            f"data; none below its bound, the nearest {nearest.label} ({nearest.share:.0%})"
        )
