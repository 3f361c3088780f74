"""The rows of the study, and the content of `moe_all_to_all.json`."""

from msgspec import Struct

from kernbench.studies.faults import below_bound, wrong_count
from kernbench.studies.moe_all_to_all.routing import skew
from kernbench.studies.study_results import StudyResults


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
