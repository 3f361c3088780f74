"""The content of `llama70b_layer.json`."""

from msgspec import Struct

from kernbench.studies.faults import below_bound, wrong_by
from kernbench.studies.llama70b_layer.shape import LAYERS
from kernbench.studies.sip_count import sip_count
from kernbench.studies.study_results import StudyResults

TOLERANCE = 2e-2
"""Largest difference from float64, as a share of the root mean square of the result. Weights and
activations are rounded to float16, 2^-11 each, in about ten steps from the input to the result.
"""
PS_PER_S = 10**12


class LayerPart(Struct, frozen=True, forbid_unknown_fields=True):
    """One part of a layer: its time, from the end of the part before it, and its bound.

    `limit` names what the bound counts: `memory`, `GEMM` or `links`.
    """

    name: str
    time_ps: int
    bound_ps: int
    limit: str

    @property
    def is_communication(self) -> bool:
        """Whether ranks exchange data, and compute nothing meanwhile."""
        return self.name.startswith("all_reduce")


class LayerRow(Struct, frozen=True, forbid_unknown_fields=True):
    """One layer on `sips` SIPs.

    `error` is the largest difference from float64 as a share of the root mean square of the result,
    None in a run without data.
    """

    sips: int
    tokens: int
    context: int
    hidden: int
    parts: tuple[LayerPart, ...]
    error: float | None

    @property
    def is_decode(self) -> bool:
        """Whether there is one new token behind a cache."""
        return self.tokens == 1

    @property
    def label(self) -> str:
        """Phase, width and SIPs."""
        phase = "decode" if self.is_decode else "prefill"
        return f"{phase} of {self.hidden} columns on {sip_count(self.sips)}"

    @property
    def time_ps(self) -> int:
        """The time of the layer: its parts follow one another."""
        return sum(part.time_ps for part in self.parts)

    @property
    def bound_ps(self) -> int:
        """The sum of the bounds of all parts."""
        return sum(part.bound_ps for part in self.parts)

    @property
    def exposed_ps(self) -> int:
        """The time in which a rank only communicates."""
        return sum(part.time_ps for part in self.parts if part.is_communication)

    @property
    def tokens_per_s(self) -> float:
        """Tokens / (80 layers x time of a layer); embedding and sampling are not counted."""
        return self.tokens * PS_PER_S / (LAYERS * self.time_ps)

    @property
    def faults(self) -> list[str]:
        """A wrong result, a part below its bound."""
        found = [*wrong_by(self.error, TOLERANCE)]
        for part in self.parts:
            found += below_bound(part.time_ps, part.bound_ps, part.name)
        return found


class LayerResults(StudyResults[LayerRow], frozen=True, forbid_unknown_fields=True):
    """The file."""

    @property
    def headline(self) -> tuple[LayerRow, ...]:
        """The rows at full size."""
        return tuple(row for row in self.rows if row.error is None)
