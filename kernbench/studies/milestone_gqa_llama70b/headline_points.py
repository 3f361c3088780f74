"""The points of the study at headline scale: one layer by panel, tokens and SIPs."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from kernbench.benches.attention.layer import LLAMA_70B, AttentionLayer, PeGrid
from kernbench.benches.attention.queues import with_hypercube
from kernbench.oracle.theory.topology_file import TopologyFile
from kernbench.studies.milestone_gqa_llama70b.headline_rows import HeadlineConfig
from kernbench.studies.milestone_gqa_llama70b.panels import AttentionPanel
from kernbench.studies.parameter_study import TopologyText
from kernbench.studies.sip_count import sip_count
from runtime.core.errors import UsageError

CHECKED_SCORES = 1 << 24
"""A run with at most as many scores has data, and its result is compared with float64."""
BLOCK_ROWS, PREFILL_KEYS, DECODE_KEYS = 64, 320, 128
"""Most queries of a block of scores of a prefill, most keys of one of a prefill and of a decode."""

MOST_TOKENS, MOST_USERS = 1 << 17, 256
"""The longest prompt or cache; most users of a point."""
ALL_SIPS_TOKENS = 2048
"""Tokens up to which a prefill runs on all numbers of SIPs; a longer one runs on the last."""


class LayerSize(NamedTuple):
    """One row of the sweep."""

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
    found = topology.parsed
    grid = PeGrid(found.cubes, found.pes_per_cube)
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
