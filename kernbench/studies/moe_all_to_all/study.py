"""The study of a mixture of experts: what it measures, keeps and shows.

The experts return what they receive, so a combined token is the sum of its weights times the token.
The weights are multiples of 1/256 with the sum 1: in float64 it is the token itself, exactly.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from kernbench import torch
from kernbench.oracle.theory.collectives.exchanges import ExchangeBound
from kernbench.oracle.theory.topology_file import TopologyFile
from kernbench.simulation import Simulation, simulate
from kernbench.studies.all_reduce import kernel_span
from kernbench.studies.catalogue import MoeFlags
from kernbench.studies.moe_all_to_all.routing import DispatchPlan, drawn_weights
from kernbench.studies.moe_all_to_all.rows import (
    MoePoint,
    MoeResults,
    MoeRow,
    plan_points,
)
from kernbench.studies.parameter_study import ParameterStudy, TopologyText
from kernbench.studies.preparation import map_tensors, meet
from kernbench.studies.table import RowTable, ns
from runtime.core.bench_registry import StudyOptions
from runtime.core.config.config_file import default_file, read_text
from runtime.core.errors import UsageError
from runtime.core.trace import OpRecord
from runtime.language.value import Array

KERNEL = "kernel all_to_all"
"""Name in the op log of the kernels of an exchange."""


def drawn_tokens(point: MoePoint) -> Array:
    """The tokens of all ranks, (ranks, tokens, hidden) in float16."""
    rng = np.random.default_rng([point.seed, point.ranks, point.tokens, point.hidden])
    return rng.normal(size=(point.ranks, point.tokens, point.hidden)).astype(np.float16)


def sent_copies(plan: DispatchPlan, tokens: Array, rank: int) -> Array:
    """The rows that a rank sends, by expert."""
    top_k = plan.order.shape[1] // tokens.shape[1]
    return tokens[rank][plan.order[rank] // top_k]


def wrong_elements(
    point: MoePoint, plan: DispatchPlan, tokens: Array, rank: int, received: Array, back: Array
) -> int:
    """Wrong elements of a rank: of the rows its experts have received, and of its combined tokens.

    `back` are the rows that have returned to the rank, by expert.
    """
    ends = np.cumsum([(0, *row) for row in plan.rows], axis=1)
    parts = [
        sent_copies(plan, tokens, source)[start:end]
        for source, (start, end) in enumerate(ends[:, rank : rank + 2])
    ]
    copies = np.empty(back.shape, np.float64)
    copies[plan.order[rank]] = back
    weights = drawn_weights(point.shape, point.seed)[rank]
    combined = (weights[:, :, None] * copies.reshape(*weights.shape, -1)).sum(axis=1)
    return int(
        np.count_nonzero(received != np.concatenate(parts))
        + np.count_nonzero(combined != tokens[rank])
    )


def exchange_times(world: Simulation) -> tuple[int, int, int]:
    """(end of the last dispatch, end of the last combine, skew of the dispatches) in ps, as
    `kernel_span` defines them.

    Each PE that moves elements has two kernels: the first one is its part of the dispatch.
    """
    # A launch can start late on some PEs, behind the packets of other ranks; so the PE decides.
    by_pe = defaultdict[tuple[int, int, int], list[OpRecord]](list)
    for sip, kernel in world.of("pe_cpu.collective", KERNEL):
        by_pe[sip, kernel.cube, kernel.pe].append(kernel)
    ordered = (sorted(kernels, key=lambda each: each.start_ps) for kernels in by_pe.values())
    dispatches, combines = zip(*ordered, strict=True)
    dispatch_ps, skew_ps = kernel_span(dispatches)
    return dispatch_ps, kernel_span([*dispatches, *combines])[0], skew_ps


def _program(plan: DispatchPlan, tokens: Array) -> Callable[[int], tuple[Array, Array]]:
    """The rank program; it returns the rows that its experts received and those that returned."""
    width = tokens.shape[2]

    def main(rank: int) -> tuple[Array, Array]:
        dist = torch.distributed
        torch.ahbm.set_device(rank)
        dist.init_process_group("ahbm")
        sent = [rows * width for rows in plan.rows[rank]]
        arriving = [row[rank] * width for row in plan.rows]
        # Flat tensors: all PEs hold equally many elements, with every routing.
        copies = torch.from_numpy(sent_copies(plan, tokens, rank).reshape(-1))
        received = torch.empty(sum(arriving), dtype=torch.float16)
        back = torch.empty(sum(sent), dtype=torch.float16)
        # The pages of all tensors are mapped, and all ranks are ready, before the first exchange.
        map_tensors(copies, received, back)
        meet()
        dist.all_to_all_single(received, copies, arriving, sent)
        dist.all_to_all_single(back, received, sent, arriving)
        return received.numpy().reshape(-1, width), back.numpy().reshape(-1, width)

    return main


DRAWN = ("--exponents", "--tokens", "--top-k")
"""The flags that draw a routing."""


class MoeStudy(ParameterStudy[MoePoint, MoeRow, MoeResults]):
    """Dispatch and combine by number of ranks and exponent of the Zipf law, or of a file."""

    results_name = "moe_all_to_all.json"
    noun = "exchanges"
    results_type = MoeResults
    figures_module = "kernbench.studies.moe_all_to_all.figures"
    table = RowTable[MoeRow](
        (
            ("ranks", lambda row: str(row.ranks)),
            ("Zipf\nexponent", lambda row: row.routing),
            ("skew", lambda row: f"{row.skew:.2f}"),
            ("<busiest port\nof the dispatch", lambda row: row.port),
            ("bytes", lambda row: f"{row.port_bytes:,}"),
            ("dispatch\n(ns)", lambda row: ns(row.dispatch_ps)),
            ("bound\n(ns)", lambda row: ns(row.dispatch_bound_ps)),
            ("ratio", lambda row: f"{row.dispatch_ps / row.dispatch_bound_ps:.3f}"),
            ("and combine\n(ns)", lambda row: ns(row.time_ps)),
            ("bound\n(ns)", lambda row: ns(row.bound_ps)),
            ("ratio", lambda row: f"{row.time_ps / row.bound_ps:.3f}"),
        ),
        group=lambda row: row.ranks,
    )
    flags: MoeFlags

    @classmethod
    def of(cls, flags: MoeFlags, options: StudyOptions) -> "MoeStudy":
        """A routing is drawn or read, not both."""
        for flag in DRAWN:
            if flags.routing and flag in options.changed:
                raise UsageError(
                    f"{flag} with --routing {flags.routing}: the file has the experts of tokens"
                )
        return cls(flags)

    def points(self, topology: TopologyText) -> Sequence[MoePoint]:
        """The sweep, with the `ccl.yaml` of the current directory or the shipped one."""
        return plan_points(topology.text, read_text(default_file("ccl.yaml")), self.flags)

    def measure(self, point: MoePoint) -> MoeRow:
        """Simulate one point."""
        plan, tokens = point.plan, drawn_tokens(point)
        world = simulate(
            _program(plan, tokens), point.ranks, topology=point.topology, ccl=point.ccl
        )
        dispatch_ps, total_ps, start_skew_ps = exchange_times(world)
        theory, there = ExchangeBound(TopologyFile.of(point.topology)), point.sizes
        dispatch = theory.busiest(there)
        return MoeRow(
            ranks=point.ranks,
            exponent=point.exponent,
            tokens=point.tokens,
            hidden=point.hidden,
            experts=point.experts,
            top_k=point.top_k,
            loads=plan.loads,
            port=dispatch.port,
            port_bytes=dispatch.nbytes,
            dispatch_ps=dispatch_ps,
            dispatch_bound_ps=dispatch.bound_ps,
            time_ps=total_ps,
            bound_ps=theory.there_and_back_ps(there),
            start_skew_ps=start_skew_ps,
            wrong=sum(
                wrong_elements(point, plan, tokens, rank, *result)
                for rank, result in world.returned.items()
            ),
        )

    def kept(self, topology: TopologyText) -> Mapping[str, Any]:  # noqa: ARG002 - of all topologies
        """The seed of all points."""
        return {"seed": self.flags.seed}

    def problem(self, results: MoeResults) -> str:
        """The figure compares the exponents of each number of ranks."""
        return "" if results.rows else "there are no rows"

    def findings(self, results: MoeResults) -> Iterator[str]:
        """The tokens that a row moves."""
        row = results.rows[0]
        yield (
            f"{'a rank':<{self.indent}}{row.tokens} tokens of {row.hidden} float16, {row.top_k} of "
            f"{row.experts} experts each, seed {results.seed}"
        )

    def passed(self, results: MoeResults) -> str:
        """Summary of the checks that passed."""
        farthest = max(results.rows, key=lambda row: row.time_ps / row.bound_ps)
        return (
            f"{len(results.rows)} exchanges: every element right, none below its bound, "
            f"the farthest {farthest.label}, {farthest.time_ps / farthest.bound_ps:.2f} times it"
        )
