"""The points of the study, its rows, and the content of `moe_all_to_all.json`.

A point is a dispatch and a combine by number of ranks and skew of the routing.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from msgspec import Struct

from kernbench.benches.flags import check_least
from kernbench.oracle.theory.collectives.exchanges import PartSizes
from kernbench.oracle.theory.topology_file import TopologyFile
from kernbench.studies.catalogue import MoeFlags, distinct_values
from kernbench.studies.moe_all_to_all.routing import (
    DispatchPlan,
    Tokens,
    drawn_experts,
    read_routing,
    skew,
)
from kernbench.studies.study_results import StudyResults, below_bound, wrong_count
from runtime.core.errors import UsageError
from runtime.language.value import Array

LEAST_RANKS, MOST_RANKS = 2, 8
ITEM_BYTES = 2
"""An element is float16."""
MOST_BYTES = 1 << 30
"""Limit of the tokens of all ranks and their scores: the host keeps several copies of them."""


@dataclass(frozen=True)
class MoePoint:
    """A dispatch and a combine, with the text of both configuration files.

    `tokens` are those of a rank. `read` has the experts of all tokens, if they are from a file;
    then `exponent` is None.
    """

    topology: str
    ccl: str
    ranks: int
    exponent: float | None
    tokens: int
    hidden: int
    experts: int
    top_k: int
    seed: int
    read: Tokens | None = None

    @property
    def shape(self) -> tuple[int, int, int]:
        """(ranks, tokens, k): the shape of the experts and of their weights."""
        return self.ranks, self.tokens, self.top_k

    @property
    def chosen(self) -> Array:
        """The experts of each token, (ranks, tokens, k)."""
        if self.read is not None:
            return np.array(self.read).reshape(self.shape)
        assert self.exponent is not None, "without a file there is an exponent"
        return drawn_experts(self.shape, self.experts, self.exponent, self.seed)

    @property
    def plan(self) -> DispatchPlan:
        """The copies of tokens that each rank sends."""
        return DispatchPlan.of(self.chosen, self.experts)

    @property
    def parts(self) -> Iterator[tuple[int, int, int]]:
        """(source rank, target rank, copies of tokens) of the dispatch."""
        for source, row in enumerate(self.plan.rows):
            for target, copies in enumerate(row):
                yield source, target, copies

    @property
    def sizes(self) -> PartSizes:
        """The parts of the dispatch."""
        return PartSizes(self.plan.rows, self.hidden, ITEM_BYTES)

    @property
    def host_bytes(self) -> int:
        """Bytes of the copies of all tokens, and of the float64 scores that draw their experts."""
        return self._copied_bytes + 8 * self.ranks * self.tokens * self.experts

    @property
    def cost(self) -> int:
        """Events grow with the bytes on the links, and paths with the ranks."""
        return self.ranks * (self._copied_bytes + 1_000_000)

    @property
    def _copied_bytes(self) -> int:
        return self.ranks * self.tokens * self.top_k * self.hidden * ITEM_BYTES

    def __str__(self) -> str:
        routing = "file" if self.exponent is None else f"a = {self.exponent:g}"
        return f"{self.ranks} ranks {routing}"


def plan_points(topology: str, ccl: str, flags: MoeFlags) -> tuple[MoePoint, ...]:
    """All points, on rings of the SIPs of a topology file; `UsageError` for wrong flags."""
    check_least(1, tokens=flags.tokens, hidden=flags.hidden, top_k=flags.top_k)
    check_least(0, seed=flags.seed)
    file = TopologyFile.of(topology)
    points = tuple(
        MoePoint(
            topology=file.on_a_ring(ranks).text,
            ccl=ccl,
            ranks=ranks,
            exponent=exponent,
            tokens=len(read) // ranks if read else flags.tokens,
            hidden=flags.hidden,
            experts=flags.experts,
            top_k=len(read[0]) if read else flags.top_k,
            seed=flags.seed,
            read=read,
        )
        for ranks in _ranks(flags)
        for exponent, read in _routings(flags, ranks)
    )
    for point in points:
        # `parts` are drawn when they are read: not before the sizes are known to fit.
        if point.host_bytes > MOST_BYTES:
            raise UsageError(
                f"--tokens {point.tokens}, --hidden {point.hidden}, --experts {point.experts}: "
                f"{point.host_bytes:,} bytes over {point.ranks} ranks, more than {MOST_BYTES:,}"
            )
        if all(not rows or source == target for source, target, rows in point.parts):
            raise UsageError(f"{point}: every token stays on its rank, so nothing is exchanged")
    return points


def _ranks(flags: MoeFlags) -> Iterator[int]:
    for word in distinct_values("--ranks", flags.ranks):
        if word not in map(str, range(LEAST_RANKS, MOST_RANKS + 1)):
            raise UsageError(
                f"--ranks {flags.ranks}: {word!r} must be a number from {LEAST_RANKS} to "
                f"{MOST_RANKS}"
            )
        if flags.experts < 1 or flags.experts % int(word):
            raise UsageError(
                f"--experts {flags.experts}: {word} ranks must have equally many, one or more"
            )
        yield int(word)


def _routings(flags: MoeFlags, ranks: int) -> Iterator[tuple[float | None, Tokens | None]]:
    """(exponent, None) for each routing that is drawn, or (None, tokens) for the file."""
    if not flags.routing:
        if flags.top_k > flags.experts:
            raise UsageError(
                f"--top-k {flags.top_k}: a token selects different experts, and there are "
                f"{flags.experts}"
            )
        for exponent in _exponents(flags.exponents):
            yield exponent, None
        return
    tokens = read_routing(Path(flags.routing), flags.experts)
    if len(tokens) % ranks:
        raise UsageError(
            f"--routing {flags.routing}: {len(tokens)} tokens cannot be divided equally over "
            f"{ranks} ranks (--ranks {flags.ranks})"
        )
    yield None, tokens


def _exponents(text: str) -> Iterator[float]:
    for word in distinct_values("--exponents", text):
        try:
            exponent = float(word)
        except ValueError:
            exponent = -1.0
        # Not `exponent < 0`: a NaN is no exponent. Beyond 20 all copies go to the first k experts.
        if not 0 <= exponent <= 20:
            raise UsageError(f"--exponents {text}: {word!r} must be a number from 0 to 20")
        yield exponent


class MoeRow(Struct, frozen=True, forbid_unknown_fields=True):
    """A dispatch and a combine of `tokens` tokens a rank, `top_k` copies of each.

    `exponent` is that of the Zipf law, None for a routing from a file. `loads` are the copies that
    each rank receives. `port` is the busiest one of the dispatch. `dispatch_ps` is the end of the
    last dispatch, `time_ps` that of the last combine, after the first start, and the bounds are
    for these; `start_skew_ps` is the time between the first and the last start of a dispatch,
    `wrong` the number of wrong elements over all ranks.
    """

    ranks: int
    exponent: float | None
    tokens: int
    hidden: int
    experts: int
    top_k: int
    loads: tuple[int, ...]
    port: str
    port_bytes: int
    dispatch_ps: int
    dispatch_bound_ps: float
    time_ps: int
    bound_ps: float
    start_skew_ps: int
    wrong: int

    @property
    def routing(self) -> str:
        """The exponent, or that a file was read."""
        return "file" if self.exponent is None else f"{self.exponent:g}"

    @property
    def label(self) -> str:
        """Ranks and exponent."""
        return f"{self.ranks} ranks, exponent {self.routing}"

    @property
    def skew(self) -> float:
        """The largest load over the mean one."""
        return skew(self.loads)

    @property
    def faults(self) -> list[str]:
        """Wrong elements, and times below their bounds."""
        return [
            *wrong_count(self.wrong),
            *below_bound(self.dispatch_ps, self.dispatch_bound_ps, "dispatch"),
            *below_bound(self.time_ps, self.bound_ps, "dispatch and combine"),
        ]


class MoeResults(StudyResults[MoeRow], frozen=True, forbid_unknown_fields=True):
    """All rows, the topology file they were measured on, and the seed of routing and tokens."""

    seed: int
