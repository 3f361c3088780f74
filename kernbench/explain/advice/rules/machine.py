"""The rules on the machine: a number that is worse than in the file that ships, and a link that is
slower than the other links of its kind.

The cost of a number is the change of the critical path of the scope that the closed forms predict
for the number of the file that ships. That of a link is the time that its bytes, and the packets
queued at it, take beyond the rate of its kind.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from kernbench.explain.advice.accesses import MemoryAccessOp
from kernbench.explain.advice.evidence import Evidence, costliest
from kernbench.explain.advice.finding import Advice, Finding, LossKind
from kernbench.explain.advice.loads import LinkLoad, loads_within
from kernbench.explain.advice.replay import Changes, StepKey
from kernbench.explain.why.what_if import NumberChange, changed_topology
from kernbench.oracle.theory.bandwidths import channel_gbs
from kernbench.oracle.theory.paths.routes import link_gbs
from kernbench.oracle.theory.topology_file import TopologyFile
from runtime.core.config.config_file import value_at
from runtime.core.errors import UsageError
from runtime.core.run_tables import NONE
from runtime.model.keys import hardware_keys, shipped_values

_UNITS = frozenset({"ns", "GB/s", "GHz", "cycles"})
_SHARES = frozenset({"cube.hbm_ctrl.efficiency"})
_SLOW = 0.8
"""A link is slow whose rate is below this part of the median of its kind."""
_LEAST_PACKET = 256
"""Smaller packets occupy a link for a time that is rounded up."""


def machine_findings(evidence: Evidence) -> list[Finding]:
    """Numbers worse than shipped, and links slower than others of their kind."""
    return [*_numbers(evidence), *_slow_links(evidence)]


def worse_numbers(values: dict[str, Any]) -> Iterator[NumberChange]:
    """The numbers of a topology file that differ from those of the file that ships."""
    shipped = shipped_values()
    for key in hardware_keys():
        if key.unit not in _UNITS and key.path not in _SHARES:
            continue
        try:
            own, usual = value_at(values, key.path), shipped[key.path]
        except (KeyError, TypeError):
            continue
        if _is_number(own) and _is_number(usual) and own != usual:
            yield NumberChange(key.path, own, usual)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _numbers(evidence: Evidence) -> Iterator[Finding]:
    changes = list(worse_numbers(evidence.records.topology.values()))
    if not changes:
        return
    for change in changes:
        try:
            predicted = evidence.predictor.predict(change)
        except UsageError:
            # Other numbers of the file do not allow it.
            continue
        # Waits for others absorb what a latency changes, where the path has both.
        least_ps = _served_ps(evidence, change)
        saved_ps = min(-predicted.predicted_ps, -predicted.absorbed_ps)
        saved_ps = min(saved_ps, evidence.total_ps - least_ps)
        if saved_ps <= 0:
            continue
        yield Finding(
            rule="number",
            kind=LossKind.MACHINE,
            cost_ps=saved_ps,
            title=f"{change.key} is {change.before:g}, and {change.after:g} in the file that ships",
            evidence="the work on the critical path, by its closed forms with both numbers",
            line=_line_of_path(evidence),
            advice=(
                Advice(text=f"{change.key}={change.after:g}", saves_ps=saved_ps, change=change),
            ),
        )


def _served_ps(evidence: Evidence, change: NumberChange) -> int:
    """The longest time that a link or a channel needs for its bytes on the changed machine."""
    scope = evidence.scope
    file = TopologyFile(changed_topology(evidence.records, change).values())
    longest_ps = 0.0
    for load in loads_within(evidence.records, scope.begin_ps, scope.end_ps):
        # The busy time of a link in front of a slower one is that of the slower one.
        if load.kind == "link":
            longest_ps = max(
                longest_ps, load.nbytes * 1000 / float(file.number(link_gbs(load.name)))
            )
        elif load.kind == "memory":
            longest_ps = max(longest_ps, load.nbytes * 1000 / float(channel_gbs(file)))
    return round(longest_ps)


def _line_of_path(evidence: Evidence) -> str:
    return costliest((piece.line, piece.length_ps) for piece in evidence.pieces if piece.line)


def _slow_links(evidence: Evidence) -> Iterator[Finding]:
    scope = evidence.scope
    by_kind = defaultdict[str, list[LinkLoad]](list)
    for load in loads_within(evidence.records, scope.begin_ps, scope.end_ps):
        if load.packets and load.busy_ps and load.nbytes >= _LEAST_PACKET * load.packets:
            by_kind[re.sub(r"\d+", "#", load.name)].append(load)
    for kind in sorted(by_kind):
        links = by_kind[kind]
        rates = sorted(load.gbs for load in links)
        usual = rates[len(rates) // 2]
        for load in links:
            if load.gbs < _SLOW * usual and (found := _slow_link(evidence, load, usual)):
                yield found


def _slow_link(evidence: Evidence, load: LinkLoad, usual: float) -> Finding | None:
    """The cost of one link that is slower than its kind."""
    ratio, saved_ps = load.gbs / usual, 0
    lines = list[tuple[str, int]]()
    for number, launch in enumerate(evidence.launches):
        steps, ops = dict[StepKey, int](), dict[tuple[int, int], int]()
        for program in launch.programs:
            passing = [
                access
                for access in evidence.accesses_of(program)
                if load.sip == access.sip and load.name in _links(evidence, access)
            ]
            for access in passing:
                ops[access.sip, access.op] = -_slower_ps(evidence, access, load, ratio)
            for step in program.steps:
                change_ps = ops.get((program.sip, step.op), 0)
                if step.op != NONE and change_ps and not step.is_async_wait:
                    steps[program.sip, step.row] = change_ps
                    lines.append((evidence.line(program, step), -change_ps))
        if ops:
            saved_ps += evidence.saved_ps(number, Changes(steps=steps, ops=ops))
    if saved_ps <= 0:
        return None
    return Finding(
        rule="slow link",
        kind=LossKind.MACHINE,
        cost_ps=saved_ps,
        title=f"slow {load.kind} {load.title}: {load.gbs:.1f} GB/s while busy",
        evidence=f"the median of its kind has {usual:.1f} GB/s; it carries {load.nbytes:,} B and "
        f"is busy {100 * load.busy_ps / max(evidence.total_ps, 1):.1f} % of the time",
        line=costliest(lines),
        advice=(
            Advice(
                text=f"give {load.title} the {usual:.0f} GB/s of its kind, or move the bytes to "
                "another one",
                saves_ps=saved_ps,
            ),
        ),
    )


def _slower_ps(evidence: Evidence, access: MemoryAccessOp, load: LinkLoad, ratio: float) -> int:
    """The time of an access that a link at its usual rate would save."""
    queued_ps = evidence.ranks[access.sip].ops["link_ps"].item(access.op)
    own_ps = access.nbytes * 1000 / load.gbs if load.gbs else 0.0
    saved_ps = (queued_ps + own_ps) * (1 - ratio)
    return round(min(saved_ps, access.time_ps - min(access.local_ps(evidence.times), own_ps)))


def _links(evidence: Evidence, access: MemoryAccessOp) -> frozenset[str]:
    return evidence.links_between(access.reader, access.memory)
