"""The rule on the algorithm of a collective: another one is faster for its size.

Which one, the measured table of `ccl.yaml` that ships states by size and ranks. The time of that
algorithm is its closed form; the cost is what the launch took beyond it.
"""

from collections.abc import Iterator
from functools import cache

from kernbench.explain.advice.evidence import Evidence
from kernbench.explain.advice.finding import Advice, Finding, LossKind
from kernbench.explain.advice.steps import LaunchSteps
from kernbench.oracle.theory.collectives.all_reduce_times import ALL_REDUCE_FORMS
from kernbench.oracle.theory.collectives.collective_forms import (
    FORMS,
    MESSAGE_BYTES,
    CollectiveTimes,
)
from kernbench.oracle.theory.collectives.overlapped_blocks import HalvingDoublingForm
from kernbench.oracle.theory.kernels.kernel_costs import KernelCosts
from kernbench.oracle.theory.paths.routes import Route
from kernbench.oracle.theory.topology_file import TopologyFile
from runtime.ccl.config import CclConfig, load_ccl
from runtime.ccl.selection import CallShape
from runtime.core.errors import KernbenchError

_OF_MORE = frozenset({"intercube", "hierarchical"})
"""Algorithms that combine the shards of cubes or PEs as well: another one has another result."""
_PACKET_BYTES = 4096
"""The packet of a slot in the forms of messages one behind the other."""
_POWERS = (2, 4, 8)
_LARGE = 1 << 15
"""All-reduces of more bytes move in blocks that overlap."""


def algorithm_findings(evidence: Evidence) -> list[Finding]:
    """Collectives for whose size another algorithm is faster."""
    by_name: dict[tuple[str, str], list[tuple[int, int, int]]] = {}
    for launch in evidence.launches:
        collective, dot, algorithm = launch.launch.name.partition(".")
        ranks = len(launch.launch.of_ranks)
        if not dot or collective not in FORMS or algorithm in _OF_MORE or ranks < 2:
            continue
        nbytes, pes = _size(evidence, launch)
        better = _better(collective, algorithm, CallShape(nbytes, ranks))
        if not better or not nbytes:
            continue
        form_ps = _form_ps(evidence, launch, collective, better, nbytes // pes)
        if form_ps is not None and form_ps < launch.time_ps:
            saved = launch.time_ps - form_ps
            by_name.setdefault((launch.launch.name, better), []).append(
                (saved, nbytes, launch.time_ps)
            )
    return list(_findings(evidence, by_name))


def _findings(
    evidence: Evidence, by_name: dict[tuple[str, str], list[tuple[int, int, int]]]
) -> Iterator[Finding]:
    for (name, better), calls in sorted(by_name.items()):
        cost_ps = sum(saved for saved, _, _ in calls)
        nbytes = max(nbytes for _, nbytes, _ in calls)
        time_ps = sum(time_ps for _, _, time_ps in calls) / len(calls)
        line = next(
            each.line
            for launch in evidence.launches
            if launch.launch.name == name
            for each in launch.launch.of_ranks
        )
        yield Finding(
            rule="algorithm",
            kind=LossKind.DEFECT,
            cost_ps=cost_ps,
            title=f"slow algorithm: {name} of {nbytes:,} B a rank takes {time_ps / 1000:,.0f} ns",
            evidence=(
                f"the measured table of ccl.yaml has {better} for this size and these ranks; its "
                f"closed form is {(time_ps - cost_ps / len(calls)) / 1000:,.0f} ns"
            ),
            line=line,
            advice=(Advice(text=f"algorithm {better}, or auto", saves_ps=cost_ps),),
        )


def _size(evidence: Evidence, launch: LaunchSteps) -> tuple[int, int]:
    """The bytes that a rank loads, and the PEs that do."""
    first = launch.launch.of_ranks[0].sip
    programs = [program for program in launch.programs if program.sip == first]
    loaded = [
        sum(access.nbytes for access in evidence.accesses_of(program) if access.is_read)
        for program in programs
    ]
    return sum(loaded), max(sum(each > 0 for each in loaded), 1)


@cache
def _shipped() -> CclConfig:
    return load_ccl()


def _better(collective: str, algorithm: str, call: CallShape) -> str:
    """The algorithm of the table for a call; empty if it is that of the call."""
    try:
        chosen = _shipped().choose("auto", collective, call)
    except KernbenchError:
        return ""
    return "" if chosen == algorithm else chosen


def _form_ps(
    evidence: Evidence, launch: LaunchSteps, collective: str, algorithm: str, nbytes: int
) -> int | None:
    """The closed form of an algorithm with `nbytes` of each PE, None without one."""
    ranks = len(launch.launch.of_ranks)
    first = launch.launch.of_ranks[0].sip
    pes = tuple((each.cube, each.pe) for each in launch.programs if each.sip == first)
    costs = max(
        (PeCosts(evidence.file, _PACKET_BYTES, pe) for pe in pes),
        key=lambda each: each.alpha_ps(each.to_sip()),
    )
    if collective != "all_reduce":
        if algorithm != "ring":
            return None
        form_ps = CollectiveTimes(evidence.file, pes).form_ps(collective, ranks, nbytes * len(pes))
        return round(form_ps)
    if algorithm == "ring":
        return ring_ps(costs, ranks, nbytes, len(pes))
    by_steps = ALL_REDUCE_FORMS.get(algorithm)
    if algorithm == "halving_doubling" and (nbytes > _LARGE or ranks not in _POWERS):
        form = _BlocksOfPe(evidence.file, costs)
        return round(form.time_ps(ranks, nbytes * len(pes), len(pes)))
    if by_steps is None or ranks not in by_steps.exact_for:
        return None
    return by_steps.time_ps(costs, ranks, nbytes)


class PeCosts(KernelCosts):
    """The command times of a PE (cube, PE), whose routes to other SIPs are its own."""

    def __init__(self, file: TopologyFile, packet_bytes: int, pe: tuple[int, int]) -> None:
        super().__init__(file, packet_bytes)
        self._here = pe

    def to_sip(self, hops: int = 1) -> Route:
        """Route from the PE to the same PE of the SIP `hops` links away."""
        return self._plan.between_pes(self._here, self._here, hops)


class _BlocksOfPe(HalvingDoublingForm):
    """The form of overlapped blocks with the routes of a PE."""

    def __init__(self, file: TopologyFile, costs: PeCosts) -> None:
        super().__init__(file, _PACKET_BYTES)
        self._costs = costs


def ring_ps(costs: KernelCosts, ranks: int, nbytes: int, pes: int) -> int:
    """A pipelined ring all-reduce of `nbytes` of each of `pes` PEs that share a link.

    A chunk of n/p has k messages of m bytes. A step takes the longer of its k messages on the link,
    k m/B, and of one message from rank to rank: alpha + m/B, the command of the receive, and the
    addition in the first p-1 of 2(p-1) steps. Before it comes a load, behind it the messages of the
    last step and a store.
    """
    chunk = max(-(-nbytes // ranks), 1)
    size = min(chunk, MESSAGE_BYTES)
    link = costs.alpha_beta(costs.to_sip())
    chunk_ps = pes * link.bytes_ps(chunk)
    passed_ps = link.message_ps(size) + costs.issue_ps
    steps_ps = max(chunk_ps, passed_ps + costs.add_ps(size)) + max(chunk_ps, passed_ps)
    rest_ps = max(chunk_ps - pes * link.bytes_ps(size), 0)
    ends_ps = costs.load_ps(size) + costs.store_ps(size)
    return round((ranks - 1) * steps_ps + rest_ps + ends_ps)
