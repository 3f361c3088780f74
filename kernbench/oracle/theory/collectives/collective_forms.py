"""The closed form of every collective on a ring of SIPs, for pipelines of messages of m bytes.

There are p ranks with n bytes each, in the larger tensor of a rank; alpha is a message without
bytes to the next SIP, B the bandwidth of a link, M that of the HBM slices of a rank together. The
bytes are those of R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of Collective Communication
Operations in MPICH", IJHPCA 19(1), 2005. Links and slices work at the same time, so the busier one
counts: every byte is read from memory once and written once.
"""

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import NamedTuple

from kernbench.oracle.theory.alpha_beta import AlphaBeta, all_reduce_bytes
from kernbench.oracle.theory.bandwidths import slice_gbs
from kernbench.oracle.theory.kernels.kernel_costs import KernelCosts
from kernbench.oracle.theory.paths.floor_plan import FloorPlan
from kernbench.oracle.theory.paths.routes import UCIE_GBS
from kernbench.oracle.theory.roofline import bytes_ps
from kernbench.oracle.theory.topology_file import TopologyFile

MESSAGE_BYTES = 8192
"""m: a message of a pipeline."""


class PipelineTerms(NamedTuple):
    """The terms of a form: messages one after the other, bytes on the busiest link, bytes in the
    memory of the busiest rank, and messages whose bytes are waited for.
    """

    steps: int
    link_bytes: Fraction
    memory_bytes: Fraction
    filling: int = 0


class CollectiveForm(NamedTuple):
    """A form as text, and its terms for (p, n)."""

    formula: str
    terms: Callable[[int, int], PipelineTerms]


def _all_reduce(p: int, n: int) -> PipelineTerms:
    return PipelineTerms(2 * (p - 1), all_reduce_bytes(p, n), Fraction(2 * n))


def _in_parts(p: int, n: int) -> PipelineTerms:
    return PipelineTerms(p - 1, Fraction((p - 1) * n, p), n + Fraction(n, p))


def _broadcast(p: int, n: int) -> PipelineTerms:
    # The last rank of a chain receives its first message p - 2 messages after the second rank does;
    # the others follow without a gap.
    return PipelineTerms(p - 1, Fraction(n), Fraction(n), filling=p - 2)


def _reduce(p: int, n: int) -> PipelineTerms:
    return PipelineTerms(p - 1, Fraction(n), Fraction(2 * n), filling=p - 2)


def _all_to_all(p: int, n: int) -> PipelineTerms:
    # A part crosses as many links as its target is away, at most floor(p/2); with even p the parts
    # for opposite ranks all take the + direction.
    half = p // 2
    return PipelineTerms(1, Fraction(half * (half + 1) * n, 2 * p), Fraction(2 * n))


FORMS: Mapping[str, CollectiveForm] = {
    "all_reduce": CollectiveForm("2(p-1) alpha + max(2(p-1)/p n/B, 2n/M)", _all_reduce),
    "reduce_scatter_tensor": CollectiveForm(
        "(p-1) alpha + max((p-1)/p n/B, (p+1)/p n/M)", _in_parts
    ),
    "all_gather_into_tensor": CollectiveForm(
        "(p-1) alpha + max((p-1)/p n/B, (p+1)/p n/M)", _in_parts
    ),
    "all_to_all_single": CollectiveForm(
        "alpha + max(k(k+1)/2 n/p/B, 2n/M), k = floor(p/2)", _all_to_all
    ),
    "broadcast": CollectiveForm("(p-1) alpha + (p-2) m/B + max(n/B, n/M)", _broadcast),
    "reduce": CollectiveForm("(p-1) alpha + (p-2) m/B + max(n/B, 2n/M)", _reduce),
}
"""The forms by collective. n is the output of an all-gather, else the input of a rank."""


class CollectiveTimes:
    """The forms of one topology file, with ranks that have their tensors on `pes` (cube, PE).

    alpha is that of the PE which is the nearest to the next SIP.
    """

    def __init__(self, file: TopologyFile, pes: tuple[tuple[int, int], ...]) -> None:
        plan, costs = FloorPlan(file), KernelCosts(file, MESSAGE_BYTES)
        alpha_ps = min(costs.alpha_ps(plan.between_pes(pe, pe, 1)) for pe in pes)
        self.link = AlphaBeta(alpha_ps, file.number(UCIE_GBS))
        self._memory_gbs = len(pes) * slice_gbs(file)

    def form_ps(self, collective: str, ranks: int, nbytes: int) -> float:
        """The form of a collective of `FORMS`, in picoseconds."""
        terms = FORMS[collective].terms(ranks, nbytes)
        filling_ps = terms.filling * self.link.bytes_ps(min(MESSAGE_BYTES, nbytes))
        bytes_both_ps = max(
            self.link.bytes_ps(terms.link_bytes), bytes_ps(terms.memory_bytes, self._memory_gbs)
        )
        return float(terms.steps * self.link.alpha_ps + filling_ps + bytes_both_ps)
