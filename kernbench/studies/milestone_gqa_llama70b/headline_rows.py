"""The points of the study at headline scale, its rows with their bounds, and their file.

Bounds are the least times by one engine, from the topology file alone. All PEs work all the time,
none waits, and no element is computed twice or in vain. A score takes `depth` multiplications for q
k^T and as many for the product with v. The vector engine computes for each score the maximum, the
difference, the exponential and the conversion. The memory reads and writes each tensor once: for 8
KV heads of 128 columns in float16 a decode reads 4096 bytes of k and v for each token of each user.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from msgspec import Struct

from kernbench.benches.attention.layer import LLAMA_70B, AttentionLayer, PeGrid
from kernbench.benches.attention.queues import with_hypercube
from kernbench.benches.attention.reference import F16_TOLERANCE
from kernbench.oracle.theory.bandwidths import own_memory_gbs
from kernbench.oracle.theory.engines.attention import ITEM_BYTES, score_times
from kernbench.oracle.theory.roofline import bytes_ps
from kernbench.oracle.theory.topology_file import TopologyFile
from kernbench.studies.milestone_gqa_llama70b.op_log import AttentionPanel, OpLogSummary, TimeParts
from kernbench.studies.parameter_study import TopologyText
from kernbench.studies.study_results import (
    EngineBounds,
    StudyResults,
    below_bound,
    sip_count,
    wrong_by,
)
from kernbench.studies.table import shown_error
from runtime.core.errors import UsageError


class HeadlineConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """The sizes of the layer, and those of the sweep; the names are those of the file.

    `S_prefill` and `S_kv_decode` are tokens a user; `batch` users have the multi-user panels.
    """

    h_q: int
    h_kv: int
    d_head: int
    batch: int
    S_prefill: tuple[int, ...]
    S_kv_decode: tuple[int, ...]
    sips: tuple[int, ...]


class AttentionBounds(EngineBounds, frozen=True, forbid_unknown_fields=True):
    """Least times by one engine of all PEs, in picoseconds; `binds` names the longest."""

    gemm_ps: float
    vector_ps: float
    memory_ps: float


class HeadlineRow(Struct, frozen=True, forbid_unknown_fields=True):
    """One layer for `batch` users with `tokens` tokens each, on `n_ranks` SIPs.

    `kernel_ps` is the time of the slowest SIP. `error` is the largest absolute difference from
    float64, None in a run without data. Of such a prefill one head is computed with data, on the
    last number of SIPs: `head_error` is its difference from float64, `halves_error` the
    difference between its results over all keys and by halves of them.
    """

    panel: AttentionPanel
    n_ranks: int
    batch: int
    tokens: int
    op_log_summary: OpLogSummary
    kernel_ps: int
    parts: TimeParts
    bounds: AttentionBounds
    error: float | None
    head_error: float | None = None
    halves_error: float | None = None

    @property
    def label(self) -> str:
        """Panel, SIPs, users and tokens."""
        return f"{self.panel} {sip_count(self.n_ranks)} {self.batch} x {self.tokens}"

    @property
    def time_ps(self) -> int:
        """The simulated time of the kernel."""
        return self.kernel_ps

    @property
    def share(self) -> float:
        """The bound as a share of the time."""
        return self.bounds.bound_ps / self.kernel_ps

    @property
    def checked(self) -> str:
        """The differences from float64, in words."""
        if self.head_error is None or self.halves_error is None:
            return shown_error(self.error)
        return f"{self.head_error:.1e} (one head; its halves {self.halves_error:.1e})"

    @property
    def faults(self) -> list[str]:
        """A wrong result, a time below the bound."""
        return [
            *wrong_by(self.error, F16_TOLERANCE),
            *wrong_by(self.head_error, F16_TOLERANCE, "one head"),
            *wrong_by(self.halves_error, F16_TOLERANCE, "halves"),
            *below_bound(self.kernel_ps, self.bounds.bound_ps),
        ]


class HeadlineResults(StudyResults[HeadlineRow], frozen=True, forbid_unknown_fields=True):
    """The file at headline scale."""

    validation_scale: bool
    panels: tuple[AttentionPanel, ...]
    config: HeadlineConfig

    def of(self, panel: AttentionPanel) -> tuple[HeadlineRow, ...]:
        """The rows of a panel."""
        return tuple(row for row in self.rows if row.panel == panel)


CHECKED_SCORES = 1 << 24
"""A run with at most as many scores has data, and its result is compared with float64."""
BLOCK_ROWS, PREFILL_KEYS, DECODE_KEYS = 64, 320, 128
"""Most queries of a block of scores of a prefill, most keys of one of a prefill and of a decode."""

MOST_TOKENS, MOST_USERS = 1 << 17, 256
"""The longest prompt or cache; most users of a point."""
ALL_SIPS_TOKENS = 2048
"""Tokens up to which a prefill runs on all numbers of SIPs; a longer one runs on the last."""


class LayerSize(NamedTuple):
    """The sizes of one row of the sweep."""

    panel: AttentionPanel
    batch: int
    tokens: int
    sips: int


@dataclass(frozen=True)
class HeadlinePoint:
    """One layer on `sips` SIPs of a topology file, given as text, with the text of the CCL file.

    SIPs have heads of their own and share nothing, so they do the same at the same times: a run
    without data simulates one of them. With `by_halves` one head of such a run is checked so.
    """

    topology: str
    ccl: str
    panel: AttentionPanel
    layer: AttentionLayer
    sips: int
    grid: PeGrid
    by_halves: bool = False

    @property
    def one_sip(self) -> str:
        """The topology of one SIP, as text."""
        return TopologyFile.of(self.topology).on_a_ring(1).text

    @property
    def own(self) -> AttentionLayer:
        """The part of one SIP."""
        return self.layer.of_rank(self.sips)

    @property
    def parts(self) -> int:
        """The PEs that share the keys of a sequence in a decode."""
        return max(1, self.grid.size // self.own.sequences) if self.panel.is_decode else 1

    @property
    def rows(self) -> int:
        """Queries of a block of scores of a prefill: half as many if a PE had one block or none."""
        blocks = self.own.sequences * self.own.group * self.layer.tokens // BLOCK_ROWS
        return BLOCK_ROWS if blocks > self.grid.size else BLOCK_ROWS // 2

    @property
    def width(self) -> int:
        """Keys of a block of scores."""
        most = DECODE_KEYS if self.panel.is_decode else PREFILL_KEYS
        return min(self.layer.tokens // self.parts, most)

    @property
    def scores(self) -> int:
        """The scores of the layer."""
        queries = 1 if self.panel.is_decode else self.layer.tokens
        return self.layer.heads * self.layer.batch * queries * self.layer.tokens

    @property
    def has_data(self) -> bool:
        """Whether the result is computed and checked."""
        return self.scores <= CHECKED_SCORES

    @property
    def cost(self) -> int:
        """The scores, of which those with data take longer; and the PEs that are built."""
        sips = self.sips if self.has_data else 1
        scores = 4 * self.scores if self.has_data else self.scores // self.sips
        checked = 8 * self.layer.tokens**2 if self.by_halves else 0
        return scores + checked + sips * self.grid.size * 10_000

    def __str__(self) -> str:
        users = f"{self.layer.batch} x " if self.layer.batch > 1 else ""
        return f"{self.panel} {users}{self.layer.tokens} tokens, {sip_count(self.sips)}"


def plan_points(
    topology: TopologyText, ccl: str, config: HeadlineConfig
) -> tuple[HeadlinePoint, ...]:
    """All points; raises `UsageError` for sizes that PEs or cubes do not divide."""
    parsed = topology.parsed
    grid = PeGrid(parsed.cubes, parsed.pes_per_cube)
    file, queues = TopologyFile.of(topology.text), with_hypercube(ccl)
    texts = {sips: file.on_a_ring(sips).text for sips in config.sips}
    points = tuple(
        HeadlinePoint(
            topology=texts[size.sips],
            ccl=queues,
            panel=size.panel,
            layer=replace(LLAMA_70B, batch=size.batch, tokens=size.tokens),
            sips=size.sips,
            grid=grid,
        )
        for size in sweep(config)
    )
    for point in points:
        _check(point)
    if not any(point.panel is AttentionPanel.MULTI_USER_PREFILL for point in points):
        raise UsageError(
            f"--prefill {','.join(map(str, config.S_prefill))}: {config.batch} users share the "
            "tokens of the longest prompt, so one number must be at most "
            f"{max(config.S_prefill) // config.batch}"
        )
    # One head is the same on every number of SIPs.
    return tuple(
        replace(point, by_halves=not point.has_data and point.sips == config.sips[-1])
        if point.panel is AttentionPanel.SINGLE_USER_PREFILL
        else point
        for point in points
    )


def sweep(config: HeadlineConfig) -> Iterator[LayerSize]:
    """The sizes of all rows, in their order."""
    for panel in AttentionPanel:
        batch = 1 if panel.is_single_user else config.batch
        for tokens in config.S_kv_decode if panel.is_decode else config.S_prefill:
            # Several users have as many tokens in all as the longest prompt of one user.
            if panel.is_decode or batch * tokens <= max(config.S_prefill):
                for sips in _sips(config, panel, batch * tokens):
                    yield LayerSize(panel, batch, tokens, sips)


def _sips(config: HeadlineConfig, panel: AttentionPanel, tokens: int) -> tuple[int, ...]:
    """The numbers of SIPs: one for a long prefill, whose simulation on few SIPs takes minutes."""
    is_short = panel.is_decode or tokens <= ALL_SIPS_TOKENS
    return config.sips if is_short else config.sips[-1:]


def _check(point: HeadlinePoint) -> None:
    own, grid = point.own, point.grid
    if grid.size & (grid.size - 1) or grid.pes & (grid.pes - 1):
        raise UsageError(
            f"--topology: the PEs of {grid.cubes} cubes with {grid.pes} each are dealt as a binary "
            "tree; both numbers must be powers of 2"
        )
    larger, smaller = max(own.sequences, grid.size), min(own.sequences, grid.size)
    if larger % smaller:
        raise UsageError(
            f"--batch {point.layer.batch}: {own.sequences} KV heads times users of a SIP and "
            f"{grid.size} PEs; one must divide the other"
        )
    if point.panel.is_decode and point.layer.tokens % point.parts:
        raise UsageError(
            f"--decode {point.layer.tokens}: on {sip_count(point.sips)}, {point.parts} PEs share "
            f"the keys of a head, so it must be a multiple of {point.parts}"
        )
    if not point.panel.is_decode and point.layer.tokens % BLOCK_ROWS:
        raise UsageError(
            f"--prefill {point.layer.tokens}: queries are computed in blocks of {BLOCK_ROWS}, so "
            f"it must be a multiple of {BLOCK_ROWS}"
        )


def attention_bounds(
    file: TopologyFile, layer: AttentionLayer, sips: int, *, is_decode: bool
) -> AttentionBounds:
    """The bounds of the whole layer on all PEs of `sips` SIPs."""
    pes = file.cubes * file.pes_per_cube * sips
    queries = 1 if is_decode else layer.tokens
    # Query i of a causal prefill sees i + 1 keys; the query of a decode sees all of them.
    pairs = layer.tokens if is_decode else layer.tokens * (layer.tokens + 1) // 2
    scores = layer.heads * layer.batch * pairs
    times = score_times(file, scores, layer.depth)
    # Queries are read and results written, for each query head; k and v are read, for each KV head.
    rows = 2 * layer.heads * queries + 2 * layer.kv_heads * layer.tokens
    nbytes = rows * layer.batch * layer.depth * ITEM_BYTES
    memory_ps = bytes_ps(nbytes, own_memory_gbs(file))
    return AttentionBounds(
        gemm_ps=float(times.gemm_ps / pes),
        vector_ps=float(times.vector_ps / pes),
        memory_ps=float(memory_ps / pes),
    )
