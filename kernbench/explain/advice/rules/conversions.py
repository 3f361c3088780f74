"""The rule on conversions of type that follow each other: to another type and back.

Between them no command uses the values, so one conversion, or none, has the same type. The cost is
that of a replay without them, but for the rounding of a narrower type.
"""

from kernbench.explain.advice.evidence import Evidence, costliest
from kernbench.explain.advice.finding import Advice, Finding, LossKind
from kernbench.explain.advice.replay import Changes, StepKey
from kernbench.explain.advice.steps import PeProgram, PeStep

_CAST = "math cast"


def conversion_findings(evidence: Evidence) -> list[Finding]:
    """Conversions behind one another, of which no value is used in between."""
    saved_ps, count, lines = 0, 0, list[tuple[str, int]]()
    for number, launch in evidence.own_launches:
        changes = dict[StepKey, int]()
        for program in launch.programs:
            for step in _back_and_forth(evidence, program):
                changes[program.sip, step.row] = -step.time_ps
                lines.append((evidence.line(program, step), step.time_ps))
        if changes:
            saved_ps += evidence.saved_ps(number, Changes(steps=changes))
            count += len(changes)
    if saved_ps <= 0:
        return []
    line = costliest(lines)
    return [
        Finding(
            rule="conversions",
            kind=LossKind.DEFECT,
            cost_ps=saved_ps,
            title=f"needless conversions: {count:,} of type, two behind each other",
            evidence="no command between the two uses the values of the first one; a narrower type "
            "between them rounds",
            line=line,
            advice=(Advice(text=f"leave out the conversions at {line}", saves_ps=saved_ps),),
        )
    ]


def _back_and_forth(evidence: Evidence, program: PeProgram) -> list[PeStep]:
    """The steps of pairs of conversions, one directly behind the other, of as many elements."""
    pairs, steps, index = list[PeStep](), program.steps, 0
    while index + 1 < len(steps):
        pair = steps[index : index + 2]
        if all(evidence.operation(program, step) == _CAST for step in pair):
            pairs += pair
            index += 1
        index += 1
    return pairs
