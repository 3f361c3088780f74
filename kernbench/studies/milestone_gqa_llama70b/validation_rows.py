"""The content of `sweep.json` at validation scale."""

from msgspec import Struct

from kernbench.benches.attention.reference import F16_TOLERANCE
from kernbench.studies.faults import wrong_by
from kernbench.studies.milestone_gqa_llama70b.op_log import OpLogSummary
from kernbench.studies.milestone_gqa_llama70b.panels import AttentionPanel
from kernbench.studies.study_results import StudyResults

F32_TOLERANCE = 2e-6
"""Largest absolute difference of a kernel with float32 operands from dense attention."""


class ValidationConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """The sizes of all panels; the names are those of the file.

    `S_q_prefill` queries and `S_kv_per_rank` keys are those of one rank; a decode has one query.
    """

    S_q_prefill: int = 16
    S_kv_per_rank: int = 16
    h_q: int = 1
    h_kv: int = 1
    d_head: int = 64
    n_ranks_single_user: int = 8
    n_ranks_multi_user: int = 4

    def ranks(self, panel: AttentionPanel) -> int:
        """The ranks of a panel."""
        return self.n_ranks_single_user if panel.is_single_user else self.n_ranks_multi_user


class ValidationRow(Struct, frozen=True, forbid_unknown_fields=True):
    """One panel: the counts of its run in float16, and the checks.

    Errors are the largest absolute differences from float64; `masked_error` (float32) is that with
    a context which leaves a rank without keys, None for prefill. `shifted_is_equal` is whether a
    number added to all scores has left every bit of the result as it was.
    """

    panel: AttentionPanel
    n_ranks: int
    op_log_summary: OpLogSummary
    kernel_ps: int
    f16_error: float
    f32_error: float
    masked_error: float | None
    shifted_is_equal: bool

    @property
    def label(self) -> str:
        """The panel."""
        return self.panel

    @property
    def time_ps(self) -> int:
        """The simulated time of the kernel."""
        return self.kernel_ps

    @property
    def products(self) -> int:
        """The products of the algorithm: two for each block of keys that a rank attends to."""
        return 2 * self.n_ranks * (1 if self.panel.is_decode else self.n_ranks)

    @property
    def faults(self) -> list[str]:
        """Wrong counts and wrong results."""
        counts, found = self.op_log_summary, list[str]()
        if counts.gemm_count != self.products:
            found.append(f"{counts.gemm_count} products, {self.products} expected")
        if not counts.ipcq_send_count or counts.ipcq_send_count != counts.ipcq_recv_count:
            found.append(f"{counts.ipcq_send_count} sends, {counts.ipcq_recv_count} receives")
        # Each rank loads its part of q, k and v, and stores its result.
        if counts.dma_read_count < 3 * self.n_ranks or counts.dma_write_count < self.n_ranks:
            found.append(f"{counts.dma_read_count} reads, {counts.dma_write_count} writes")
        found += wrong_by(self.f16_error, F16_TOLERANCE, "float16")
        found += wrong_by(self.f32_error, F32_TOLERANCE, "float32")
        found += wrong_by(self.masked_error, F32_TOLERANCE, "masked keys")
        if not self.shifted_is_equal:
            found.append("a number added to all scores changes the result")
        return found


class ValidationResults(StudyResults[ValidationRow], frozen=True, forbid_unknown_fields=True):
    """The file at validation scale."""

    validation_scale: bool
    panels: tuple[AttentionPanel, ...]
    config: ValidationConfig
