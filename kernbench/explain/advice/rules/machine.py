"""The rules on the machine: a number that is worse than in the file that ships, and a part that has
worse values than the others of its kind.

The cost of a number is the change of the critical path of the scope that the closed forms predict
for the number of the file that ships, that of a part the change if it were as the others. No change
makes the scope shorter than the bytes of its busiest link or channel take on the changed machine.
"""

from collections.abc import Iterator
from typing import Any

from kernbench.explain.advice.evidence import Evidence, costliest
from kernbench.explain.advice.finding import Advice, Finding, LossKind
from kernbench.explain.advice.loads import loads_within
from kernbench.explain.why.what_if import NumberChange, changed_topology
from kernbench.oracle.theory.bandwidths import channel_gbs
from kernbench.oracle.theory.paths.routes import link_gbs
from kernbench.oracle.theory.topology_file import TopologyFile
from runtime.core.config.config_file import value_at
from runtime.core.config.plain_yaml import to_yaml
from runtime.core.errors import UsageError
from runtime.model.keys import hardware_keys
from runtime.model.topology import load_topology, parse_topology

_UNITS = frozenset({"ns", "GB/s", "GHz", "cycles"})
_SHARES = frozenset({"cube.hbm_ctrl.efficiency"})
_OVERRIDES = "overrides"


def machine_findings(evidence: Evidence) -> list[Finding]:
    """Numbers worse than shipped, and parts worse than others of their kind."""
    return [*_numbers(evidence), *_own_values(evidence)]


def worse_numbers(values: dict[str, Any]) -> Iterator[NumberChange]:
    """The numbers of a topology file that differ from those of the file that ships."""
    shipped = load_topology().values()
    for key in hardware_keys():
        if key.unit not in _UNITS and key.path not in _SHARES:
            continue
        try:
            own, usual = value_at(values, key.path), value_at(shipped, key.path)
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


def _own_values(evidence: Evidence) -> Iterator[Finding]:
    """The parts of the machine that have values of their own, in the section `overrides`."""
    records = evidence.records
    values = records.topology.values()
    overrides: dict[str, dict[str, Any]] = values.get(_OVERRIDES) or {}
    for name, own in overrides.items():
        others = {each: keys for each, keys in overrides.items() if each != name}
        text = to_yaml(values | {_OVERRIDES: others}, sort_keys=False)
        topology = parse_topology(text, f"{records.name} without {name}", records.run.sips)
        saved_ps = -max(evidence.predictor.changes_ps(topology))
        if saved_ps <= 0:
            continue
        shown = ", ".join(
            key if value is True else f"{key} {value:g}" for key, value in own.items()
        )
        yield Finding(
            rule="part",
            kind=LossKind.MACHINE,
            cost_ps=saved_ps,
            title=f"{name} differs from the other parts of its kind: {shown}",
            evidence="the work on the critical path, by its closed forms with and without it",
            line=_line_of_path(evidence),
            advice=(
                Advice(
                    text=f"{name} as the other parts of its kind, or no work and bytes there",
                    saves_ps=saved_ps,
                    is_machine=True,
                ),
            ),
        )
