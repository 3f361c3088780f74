"""The least time that a run could take: that of its busiest resource, or of its longest chain.

No order of the same operations ends before the busiest link, memory or computing engine has served
all of its own, one after the other; and none before the chain of dependencies of the critical path
is through, even if nothing in it ever waited in a queue. The larger of the two is the bound. The
busy time of a transfer engine (DMA, fetch and store) is none: it serves several operations at once,
and each for as long as its data is on its way, queues included.
"""

from collections.abc import Sequence

from msgspec import Struct

from kernbench.explain.records import RunRecords
from kernbench.explain.why.cursor import RunIndex
from kernbench.explain.why.load import Load, busiest, loads
from kernbench.explain.why.path import critical_path
from kernbench.explain.why.piece import PathPiece, PieceKind
from runtime.core.simtime import format_ps


class RunBound(Struct, frozen=True):
    """Both bounds of a run of `total_ps`."""

    total_ps: int
    resource: Load | None
    path_ps: int

    @property
    def resource_ps(self) -> int:
        """The busy time of the busiest resource."""
        return self.resource.busy_ps if self.resource else 0

    @property
    def bound_ps(self) -> int:
        """The larger bound."""
        return max(self.resource_ps, self.path_ps)

    @property
    def is_of_path(self) -> bool:
        """Whether the chain of dependencies is the larger bound."""
        return self.path_ps >= self.resource_ps

    @property
    def reached(self) -> float:
        """The bound as a share of the time of the run."""
        return self.bound_ps / self.total_ps if self.total_ps else 1.0


def run_bound(
    records: RunRecords, index: RunIndex | None = None, resource: Load | None = None
) -> RunBound:
    """The bound of a run; `index` and busiest `resource` are those of the records, if known."""
    # Without the detours to the operations that had an engine: those are no dependencies.
    direct = critical_path(records, index, through_engines=False)
    resource = resource or busiest(loads(records, 1))
    return RunBound(records.total_ps, resource, without_waiting_ps(direct.pieces))


def without_waiting_ps(pieces: Sequence[PathPiece]) -> int:
    """The time of the pieces that are no queues."""
    return sum(each.length_ps for each in pieces if each.kind is not PieceKind.QUEUE)


def bound_line(bound: RunBound) -> str:
    """The bound, its share of the run, and its reason."""
    share = 100 * bound.reached
    least = f"at least {format_ps(bound.bound_ps)}, {share:.1f} % of the run"
    return f"bound           {least}, in any order: {_name(bound)}"


def _name(bound: RunBound) -> str:
    if bound.is_of_path or bound.resource is None:
        return "the steps that wait for each other, without queues"
    return f"the work of {bound.resource.noun} {bound.resource.title}"
