"""The study at headline scale: what it measures, keeps and shows.

A prefill that is too long for a run of all heads with data is checked by one head of it, computed
with data on all PEs of a SIP: by the kernel of the study over all keys, and from two states (m, l,
o) of each query, over the first half of the keys and over the second, which the rule of online
softmax joins. Both results must be equal within the rounding of float16, and the first one equal to
float64, which is computed block by block.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from kernbench import torch
from kernbench.benches.attention.grouped_prefill import grouped_prefill, halved_prefill
from kernbench.benches.attention.layer import LLAMA_70B
from kernbench.benches.attention.reference import attention, grouped_attention
from kernbench.oracle.theory.topology_file import TopologyFile
from kernbench.simulation import no_records, simulate
from kernbench.studies.catalogue import VALIDATION, GqaFlags, rising_numbers
from kernbench.studies.milestone_gqa_llama70b.headline_program import (
    LayerOutcome,
    LayerTensors,
    block_shape,
    layer_program,
    layer_tensors,
    placed_tensors,
)
from kernbench.studies.milestone_gqa_llama70b.headline_rows import (
    BLOCK_ROWS,
    MOST_TOKENS,
    MOST_USERS,
    HeadlineConfig,
    HeadlinePoint,
    HeadlineResults,
    HeadlineRow,
    LayerSize,
    attention_bounds,
    plan_points,
    sweep,
)
from kernbench.studies.milestone_gqa_llama70b.op_log import (
    AttentionPanel,
    OpLogCounts,
    WorkIntervals,
)
from kernbench.studies.milestone_gqa_llama70b.validation import ValidationStudy
from kernbench.studies.parameter_study import ParameterStudy, TopologyText
from kernbench.studies.table import RowTable
from runtime.core.bench_registry import StudyOptions
from runtime.core.config.config_file import default_file, read_text
from runtime.core.errors import UsageError
from runtime.core.trace import OpRecord
from runtime.language.value import Array

QUERIES = BLOCK_ROWS
"""Queries whose scores are in memory at once, in float64; it divides the tokens."""


class HeadErrors(NamedTuple):
    """Largest absolute differences: of the head from float64, and of its result by halves."""

    exact: float
    halves: float


def head_errors(point: HeadlinePoint) -> HeadErrors:
    """Simulate one head of a prefill of one user, with data."""
    layer = replace(point.layer, heads=1, kv_heads=1)
    head = replace(point, layer=layer, sips=1, topology=point.one_sip)
    tensors, shape = layer_tensors(head), block_shape(point)

    def main(rank: int) -> list[Array]:
        torch.ahbm.set_device(rank)
        results = list[Array]()
        for kernel in (grouped_prefill, halved_prefill):
            placed = placed_tensors(head, tensors)
            torch.launch(kernel.__name__, kernel, *placed, layer, shape, head.grid)
            results.append(placed[3].numpy().astype(np.float64))
        return results

    # The op log is not needed, and is longer than memory should hold.
    world = simulate(main, 1, topology=head.topology, ccl=head.ccl, on_records=no_records)
    whole, halves = world.returned[0]
    q, k, v = (each.reshape(layer.tokens, layer.depth) for each in tensors)
    exact = np.concatenate(
        [
            attention(q[end - QUERIES : end], k[:end], v[:end], causal=True)
            for end in range(QUERIES, layer.tokens + 1, QUERIES)
        ]
    )
    return HeadErrors(float(np.abs(whole - exact).max()), float(np.abs(halves - whole).max()))


def largest_error(
    tensors: LayerTensors, point: HeadlinePoint, outcomes: Mapping[int, LayerOutcome]
) -> float:
    """The largest absolute difference of all ranks from dense attention in float64."""
    parts = [outcome.result for _, outcome in sorted(outcomes.items())]
    result = np.concatenate([part for part in parts if part is not None]).reshape(tensors.q.shape)
    errors = list[float]()
    for user in range(point.layer.batch):
        # (heads, queries, depth), and (KV heads, tokens, depth).
        q = tensors.q[:, user].reshape(point.layer.heads, -1, point.layer.depth)
        exact = grouped_attention(
            q, tensors.k[:, user], tensors.v[:, user], causal=not point.panel.is_decode
        )
        computed = result[:, user].reshape(exact.shape).astype(np.float64)
        errors.append(float(np.abs(computed - exact).max()))
    return max(errors)


class HeadlineStudy(ParameterStudy[HeadlinePoint, HeadlineRow, HeadlineResults]):
    """One attention layer of llama-70B; the flags are lists of numbers, separated by commas."""

    results_name = "gqa/sweep.json"
    noun = "layers"
    results_type = HeadlineResults
    figures_module = "kernbench.studies.milestone_gqa_llama70b.headline_figures"
    table = RowTable[HeadlineRow](
        (
            ("<panel", lambda row: row.panel),
            ("SIPs", lambda row: str(row.n_ranks)),
            ("users", lambda row: str(row.batch)),
            ("tokens", lambda row: f"{row.tokens:,}"),
            ("time\n(us)", lambda row: f"{row.kernel_ps / 1e6:,.2f}"),
            ("bound\n(us)", lambda row: f"{row.bounds.bound_ps / 1e6:,.2f}"),
            ("<bound\nby", lambda row: row.bounds.binds),
            ("bound /\ntime (%)", lambda row: f"{100 * row.share:.1f}"),
            ("GEMM\n(%)", lambda row: f"{100 * row.bounds.gemm_ps / row.kernel_ps:.1f}"),
            ("vector\n(%)", lambda row: f"{100 * row.bounds.vector_ps / row.kernel_ps:.1f}"),
            ("memory\n(%)", lambda row: f"{100 * row.bounds.memory_ps / row.kernel_ps:.1f}"),
            ("<error\nto float64", lambda row: row.checked),
        ),
        group=lambda row: (row.panel, row.tokens),
    )
    flags: GqaFlags

    @classmethod
    def of(cls, flags: GqaFlags, options: StudyOptions) -> "HeadlineStudy | ValidationStudy":
        """The environment selects the scale."""
        value = os.environ.get(VALIDATION, "")
        if value not in ("", "0", "1"):
            raise UsageError(
                f"{VALIDATION} is {value!r}: 1 runs the validation scale, 0 or nothing the headline"
            )
        if value != "1":
            return cls(flags)
        if options.changed:
            flag = options.changed[0]
            raise UsageError(f"{flag} with {VALIDATION}=1: the validation scale has fixed sizes")
        return ValidationStudy()

    @property
    def config(self) -> HeadlineConfig:
        """The sizes; raises `UsageError` for flags that are no such lists."""
        flags = self.flags
        if not 2 <= flags.batch <= MOST_USERS:
            raise UsageError(f"--batch {flags.batch}: several users are 2 to {MOST_USERS}")
        sips = rising_numbers("--sips-list", flags.sips_list, 1, LLAMA_70B.kv_heads)
        for count in sips:
            if LLAMA_70B.kv_heads % count:
                raise UsageError(
                    f"--sips-list {count}: the {LLAMA_70B.kv_heads} KV heads do not divide by it"
                )
        return HeadlineConfig(
            h_q=LLAMA_70B.heads,
            h_kv=LLAMA_70B.kv_heads,
            d_head=LLAMA_70B.depth,
            batch=flags.batch,
            S_prefill=rising_numbers("--prefill", flags.prefill, 1, MOST_TOKENS),
            S_kv_decode=rising_numbers("--decode", flags.decode, 1, MOST_TOKENS),
            sips=sips,
        )

    def points(self, topology: TopologyText) -> Sequence[HeadlinePoint]:
        """Raises `UsageError` for sizes that the machine does not divide."""
        return plan_points(topology, read_text(default_file("ccl.yaml")), self.config)

    def measure(self, point: HeadlinePoint) -> HeadlineRow:
        """Simulate one point."""
        tensors = layer_tensors(point) if point.has_data else None
        counts, works = OpLogCounts(), WorkIntervals()

        def observe(sip: int, records: Sequence[OpRecord]) -> None:
            counts.add(sip, records)
            works.add(sip, records)

        # See `HeadlinePoint`.
        sips = point.sips if point.has_data else 1
        world = simulate(
            layer_program(point, tensors),
            sips,
            topology=point.topology if point.has_data else point.one_sip,
            ccl=point.ccl,
            data=point.has_data,
            on_records=observe,
        )
        head = head_errors(point) if point.by_halves else None
        return HeadlineRow(
            panel=point.panel,
            n_ranks=point.sips,
            batch=point.layer.batch,
            tokens=point.layer.tokens,
            op_log_summary=counts.summary(point.sips // sips),
            kernel_ps=max(outcome.kernel_ps for outcome in world.returned.values()),
            parts=works.parts(),
            bounds=attention_bounds(
                TopologyFile.of(point.topology),
                point.layer,
                point.sips,
                is_decode=point.panel.is_decode,
            ),
            error=None if tensors is None else largest_error(tensors, point, world.returned),
            head_error=None if head is None else head.exact,
            halves_error=None if head is None else head.halves,
        )

    def kept(self, topology: TopologyText) -> Mapping[str, Any]:  # noqa: ARG002 - of all topologies
        """The sizes of the sweep."""
        return {
            "validation_scale": False,
            "panels": tuple(AttentionPanel),
            "config": self.config,
        }

    def problem(self, results: HeadlineResults) -> str:
        """The rows of the sweep, and a row of every panel for the figures."""
        sizes = [LayerSize(row.panel, row.batch, row.tokens, row.n_ranks) for row in results.rows]
        if sizes == list(sweep(results.config)) and all(map(results.of, AttentionPanel)):
            return ""
        return "there must be a row for each size of its config, and one of every panel"

    def passed(self, results: HeadlineResults) -> str:
        """Summary of the checks that passed, with the layers nearest to their bounds."""
        checked = sum(row.error is not None for row in results.rows)
        heads = sum(row.head_error is not None for row in results.rows)
        nearest = [
            max(
                (row for row in results.rows if row.panel.is_decode == decodes),
                key=lambda row: row.share,
            )
            for decodes in (False, True)
        ]
        names = " and ".join(f"{row.label} ({row.share:.0%})" for row in nearest)
        return (
            f"{len(results.rows)} layers: {checked} right against float64, of {heads} one head, "
            f"also by halves, the others without data; none below its bound, the nearest {names}"
        )
