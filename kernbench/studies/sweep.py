"""The sweep of a study: all points of its plan simulated in worker processes, with their progress."""

import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from kernbench.studies.pool import completed
from kernbench.studies.progress import shown


class _Point(Protocol):
    @property
    def cost(self) -> int: ...


P = TypeVar("P", bound=_Point)
R = TypeVar("R")


@dataclass(frozen=True)
class Plan(Generic[P]):
    """What is to be simulated: on the topology file `source`, every point of `points`, the rows in their order.

    The `cost` of a point is what simulating it takes, roughly, in a unit that all of them share.
    """

    source: str
    topology_hash: str
    points: tuple[P, ...]


def rows_of(
    plan: Plan[P],
    measure: Callable[[P], R],
    procs: int,
    timeout_s: float,
    *,
    noun: str,
    outcome: Callable[[R], str],
) -> tuple[R, ...]:
    """The row `measure(point)` for each point; they do not depend on the number of processes.

    `procs`, `timeout_s` and what is raised are those of `completed`; `noun` and `outcome` are for the progress on stderr.
    """
    # The longest first, so that no process is left alone with one at the end.
    ordered = sorted(plan.points, key=lambda point: point.cost, reverse=True)
    with closing(completed(measure, ordered, procs, timeout_s)) as done:
        rows = dict(shown(done, len(ordered), sys.stderr, noun, outcome))
    return tuple(rows[point] for point in plan.points)
