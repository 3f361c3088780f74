"""The rows of the study, and the content of `ccl_sweep.json`."""

from msgspec import Struct

from kernbench.studies.faults import below_bound, wrong_count
from kernbench.studies.milestone_1h_ccl.networks import RingLayout, SipNetwork
from kernbench.studies.milestone_1h_ccl.theory import RingTimeParts
from kernbench.studies.study_results import StudyResults

PARTS = ("size", "kind", "reference")
"""Parts of the study: sweep over sizes, sweep over queue memories, parameters of ASTRA-sim."""


class CclRow(Struct, frozen=True, forbid_unknown_fields=True):
    """One all-reduce of `nbytes` a PE: its simulated time, and the times of the closed forms.

    `skew_ps` is the time between the first and the last start of the kernels, `wrong` the number of
    wrong elements over all ranks. `slot_in_ps` is the time of a slot from its sender's DMA until
    its announcement at the receiver, `slot_out_ps` the time of the receiver's DMA to copy it to
    scratch, both of the median slot, 0 where kernels use messages in their slots; `link_gbs` is the
    least bandwidth between two ranks. `least_ps` is a lower bound, `alpha_beta_ps` the textbook
    form, which is none for a pipeline; `parts` explains the ring with queues in TCM.
    """

    part: str
    network: SipNetwork
    algorithm: str
    buffer_kind: str
    slots: int
    slot_bytes: int
    nbytes: int
    time_ps: int
    skew_ps: int
    wrong: int
    slot_in_ps: int
    slot_out_ps: int
    link_gbs: float
    least_ps: float
    alpha_beta_ps: float
    parts: RingTimeParts | None

    @property
    def ratio(self) -> float:
        """Measured time over the textbook form."""
        return self.time_ps / self.alpha_beta_ps

    @property
    def busbw_gbs(self) -> float:
        """Bus bandwidth as nccl-tests defines it for an all-reduce: 2(p-1)/p bytes over time."""
        ranks = self.network.sips
        return 2 * (ranks - 1) / ranks * self.nbytes * 1000 / self.time_ps

    @property
    def key(self) -> tuple[object, ...]:
        """Identity of the row: no two rows of a file have the same."""
        return self.part, self.network, self.algorithm, self.buffer_kind, self.slots, self.nbytes

    @property
    def label(self) -> str:
        """Network, algorithm, queue memory and size."""
        return f"{self.network} {self.algorithm} {self.buffer_kind} {self.nbytes} B"

    @property
    def faults(self) -> list[str]:
        """A wrong sum, kernels that start at different times, a time below the bound."""
        found = [*wrong_count(self.wrong)]
        if self.skew_ps:
            found.append(
                f"kernels start {self.skew_ps:,} ps apart, "
                "the time is not that of the all-reduce alone"
            )
        found += below_bound(self.time_ps, self.least_ps)
        return found


class CclResults(StudyResults[CclRow], frozen=True, forbid_unknown_fields=True):
    """All rows, and the networks of the part `size` with the ring in each of them."""

    networks: tuple[SipNetwork, ...]
    layouts: tuple[RingLayout, ...]

    def of(self, part: str) -> list[CclRow]:
        """The rows of one of `PARTS`."""
        return [row for row in self.rows if row.part == part]
