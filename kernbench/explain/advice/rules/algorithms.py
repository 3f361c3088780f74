"""The rule on the algorithm of a collective: another one is faster for its size.

Which one, the measured table of `ccl.yaml` that ships states by size and ranks. The cost is what
the launch took beyond a simulation of the call with that algorithm.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache

from kernbench.explain.advice.collective_runs import (
    COLLECTIVE_OF_CALL,
    SimulatedCall,
    simulated_ps,
)
from kernbench.explain.advice.evidence import Evidence
from kernbench.explain.advice.finding import Advice, Finding, LossKind
from kernbench.explain.advice.steps import LaunchSteps
from runtime.ccl.config import CclConfig, load_ccl
from runtime.ccl.group import is_grid
from runtime.ccl.selection import CallShape
from runtime.core.errors import KernbenchError

_OF_MORE = frozenset({"intercube", "hierarchical"})
"""Algorithms that combine the shards of cubes or PEs as well: another one has another result."""
_SIMULATED = 4
"""Different calls that are simulated, those that take most time."""


def algorithm_findings(evidence: Evidence) -> Iterator[Finding]:
    """Collectives for whose size another algorithm is faster."""
    by_call = defaultdict[tuple[str, SimulatedCall], list[LaunchSteps]](list)
    for launch in evidence.launches:
        name, dot, algorithm = launch.launch.name.partition(".")
        all_ranks = len(launch.launch.of_ranks) == len(evidence.records.sips) > 1
        if dot and name in COLLECTIVE_OF_CALL and algorithm not in _OF_MORE and all_ranks:
            call = _faster_call(evidence, launch, name, algorithm)
            if call is not None:
                by_call[launch.launch.name, call].append(launch)
    costliest = sorted(by_call.items(), key=lambda each: -sum(it.time_ps for it in each[1]))
    for (name, call), launches in costliest[:_SIMULATED]:
        least_ps = simulated_ps(evidence.records.topology_text, call)
        if least_ps is not None and least_ps < launches[0].time_ps:
            yield _finding(name, call, launches, least_ps)


def _finding(
    name: str, call: SimulatedCall, launches: Sequence[LaunchSteps], least_ps: int
) -> Finding:
    times = [each.time_ps for each in launches]
    cost_ps = sum(max(time_ps - least_ps, 0) for time_ps in times)
    mean_ns = sum(times) / len(times) / 1000
    return Finding(
        rule="algorithm",
        kind=LossKind.DEFECT,
        cost_ps=cost_ps,
        title=f"slow algorithm: {name} of {call.nbytes:,} B a rank takes {mean_ns:,.0f} ns",
        evidence=(
            f"the measured table of ccl.yaml has {call.algorithm} for this size and these ranks, "
            f"which takes {least_ps / 1000:,.0f} ns in a simulation of the call alone"
        ),
        line=launches[0].launch.of_ranks[0].line,
        advice=(Advice(text=f"algorithm {call.algorithm}, or auto", saves_ps=cost_ps),),
    )


def _faster_call(
    evidence: Evidence, launch: LaunchSteps, name: str, algorithm: str
) -> SimulatedCall | None:
    """The call with the algorithm of the table; None if it has that one."""
    root, loaded = _loads(evidence, launch, reads=name != "reduce")
    nbytes, ranks = sum(loaded.values()), len(launch.launch.of_ranks)
    cubes = tuple(sorted({cube for cube, _ in loaded}))
    if not nbytes or len(loaded) % len(cubes):
        return None
    topology = evidence.records.topology
    on_grid = is_grid([each.sip for each in launch.launch.of_ranks], topology)
    try:
        shape = CallShape(nbytes, ranks, len(cubes), on_grid)
        chosen = _shipped().choose("auto", name, shape)
    except KernbenchError:
        return None
    if chosen == algorithm:
        return None
    return SimulatedCall(name, chosen, ranks, nbytes, cubes, len(loaded) // len(cubes), root)


def _loads(
    evidence: Evidence, launch: LaunchSteps, *, reads: bool
) -> tuple[int, dict[tuple[int, int], int]]:
    """The rank that loads most, or stores most, the first of several; the bytes of its PEs."""
    by_rank = defaultdict[int, dict[tuple[int, int], int]](dict)
    for program in launch.programs:
        accesses = evidence.accesses_of(program)
        nbytes = sum(each.nbytes for each in accesses if each.is_read == reads)
        if nbytes:
            by_rank[program.sip][program.cube, program.pe] = nbytes
    most = max(by_rank, key=lambda sip: (sum(by_rank[sip].values()), -sip), default=0)
    return most, by_rank[most]


@cache
def _shipped() -> CclConfig:
    return load_ccl()
