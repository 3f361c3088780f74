"""A loss of time in a part of a run, with its evidence and what to change."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from kernbench.explain.why.what_if import NumberChange


class LossKind(IntEnum):
    """The kinds of losses, in the order in which a report shows those that matter."""

    MACHINE = 0
    """A number of the machine is worse than in the file that ships, or than among its equals."""
    DEFECT = 1
    """A part of the program is unlike its equals, or has no effect."""
    REDESIGN = 2
    """The program could be arranged in another way; the gain is what a complete change has."""


@dataclass(frozen=True, kw_only=True)
class Advice:
    """A change, and the time that it is estimated to save; of a number of the machine, the number.

    `is_machine` is for changes of the machine that no number states. `simulated_ps` is the change
    of the time of the run, negative for less, if it was simulated.
    """

    text: str
    saves_ps: int
    change: NumberChange | None = None
    simulated_ps: int | None = None
    is_machine: bool = False

    @property
    def of_machine(self) -> bool:
        """Whether the machine changes, and not the program."""
        return self.is_machine or self.change is not None


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A loss: `cost_ps` of the time of the scope, at the statement `line` if it is at one.

    `rule` names the rule for programs, `title` states the loss and `evidence` the records that show
    it.
    """

    rule: str
    kind: LossKind
    cost_ps: int
    title: str
    evidence: str
    line: str = ""
    advice: Sequence[Advice] = ()


LEAST_SHARE = 50
"""A loss of less than this part of the time stands behind all larger losses of any kind."""
SHOWN_SHARE = 200
"""A loss of less than this part of the time is not shown."""


SERVICE = "service"
"""Rule of a PE that waits longer than others for the same work."""
_CAUSES_OF_SERVICE = frozenset({"hot slice", "far operands", "part", "number"})


def _is_symptom(finding: Finding, findings: Sequence[Finding]) -> bool:
    """Whether another finding names the cause of a slower service, with at least its cost."""
    return finding.rule == SERVICE and any(
        each.rule in _CAUSES_OF_SERVICE and each.cost_ps >= finding.cost_ps for each in findings
    )


def ranked(findings: Sequence[Finding], total_ps: int) -> list[Finding]:
    """The findings that matter: first by kind, then the largest first.

    A defect comes before a redesign: its cost is that of work which another part of the same
    program does without, and the gain of a redesign is an upper estimate.
    """
    shown = [each for each in findings if each.cost_ps * SHOWN_SHARE >= total_ps > 0]
    shown = [each for each in shown if each.cost_ps > 0 and not _is_symptom(each, findings)]

    def order(finding: Finding) -> tuple[bool, int, int, str]:
        is_small = finding.cost_ps * LEAST_SHARE < total_ps
        kind = 0 if is_small else int(finding.kind)
        return is_small, kind, -finding.cost_ps, finding.rule

    return sorted(shown, key=order)
