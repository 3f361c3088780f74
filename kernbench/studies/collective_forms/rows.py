"""The rows of the study, and the content of `collective_forms.json`."""

from msgspec import Struct

from kernbench.studies.faults import wrong_count
from kernbench.studies.study_results import StudyResults

LARGE_BYTES = 1 << 20
LIMIT = 1.15
"""The most times its form that a collective on `LARGE_BYTES` or more may take."""


class FormRow(Struct, frozen=True, forbid_unknown_fields=True):
    """One call of a collective on about `nbytes` in the larger tensor of a rank, on `pes` PEs.

    `time_ps` is the time of the kernels, `form_ps` the closed form, `skew_ps` the time between the
    first and the last start of a kernel, `wrong` the number of wrong elements over all ranks, None
    in a run without data.
    """

    collective: str
    pes: int
    ranks: int
    nbytes: int
    time_ps: int
    form_ps: float
    skew_ps: int
    wrong: int | None

    @property
    def ratio(self) -> float:
        """The time over the form."""
        return self.time_ps / self.form_ps

    @property
    def label(self) -> str:
        """Collective, ranks, PEs and size."""
        return f"{self.collective} {self.ranks} ranks {self.pes} PEs {self.nbytes} B"

    @property
    def faults(self) -> list[str]:
        """A wrong result, or a large collective that takes more than `LIMIT` of its form."""
        faults = [*wrong_count(self.wrong)]
        if self.nbytes >= LARGE_BYTES and self.ratio > LIMIT:
            faults.append(f"{self.ratio:.2f} times the closed form, more than {LIMIT}")
        return faults


class FormResults(StudyResults[FormRow], frozen=True, forbid_unknown_fields=True):
    """All rows, and the topology file they were measured on."""
