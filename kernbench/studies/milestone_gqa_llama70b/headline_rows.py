"""The content of `sweep.json` at headline scale."""

from msgspec import Struct

from kernbench.benches.attention.reference import F16_TOLERANCE
from kernbench.studies.faults import below_bound, wrong_by
from kernbench.studies.milestone_gqa_llama70b.op_log import OpLogSummary
from kernbench.studies.milestone_gqa_llama70b.panels import AttentionPanel
from kernbench.studies.sip_count import sip_count
from kernbench.studies.study_results import StudyResults


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


class TimeParts(Struct, frozen=True, forbid_unknown_fields=True):
    """The time of the kernel, in picoseconds and as a mean over all PEs.

    Each moment counts for the first of these that is true of a PE: its GEMM engine works, its
    vector engine works, a load or store is in flight, a message to or from another PE is in flight.
    `other_ps` is the rest of its kernel, `idle_ps` the time after it until the last kernel ends.
    """

    gemm_ps: float
    vector_ps: float
    memory_ps: float
    message_ps: float
    other_ps: float
    idle_ps: float

    @property
    def total_ps(self) -> float:
        """The sum of all parts."""
        return (
            self.gemm_ps
            + self.vector_ps
            + self.memory_ps
            + self.message_ps
            + self.other_ps
            + self.idle_ps
        )


class AttentionBounds(Struct, frozen=True, forbid_unknown_fields=True):
    """Least times by one engine of all PEs, in picoseconds; `binds` names the longest."""

    gemm_ps: float
    vector_ps: float
    memory_ps: float

    @property
    def bound_ps(self) -> float:
        """The longest of the three."""
        return max(self.gemm_ps, self.vector_ps, self.memory_ps)

    @property
    def binds(self) -> str:
        """The engine whose time is the bound."""
        times = {"GEMM": self.gemm_ps, "vector": self.vector_ps, "memory": self.memory_ps}
        return max(times, key=times.__getitem__)


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
