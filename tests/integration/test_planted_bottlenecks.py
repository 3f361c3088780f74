"""Planted bottlenecks: the first line of `why --kernel` names each, with the time that it costs.

The cost is the difference of two simulations, of the program with the plant and of its twin.
"""

import pytest

from kernbench.explain.advice.advise import ScopeAdvice, advise
from kernbench.explain.advice.scope import RunSelection
from tests.support.bottlenecks import CASES, Bottleneck
from tests.support.further_bottlenecks import FURTHER
from tests.support.more_bottlenecks import NUMBERS, VARIANTS
from tests.support.simulated_runs import recorded


def advised(case: Bottleneck, *, planted: bool) -> ScopeAdvice:
    """The advice on the kernel of a case."""
    records = recorded(
        lambda rank: case.program(rank, planted),
        case.sips,
        topology=case.topology(planted=planted),
        data=False,
    )
    return advise(records, RunSelection(kernel=case.kernel))


CASE = [
    *CASES,
    *(pytest.param(case, marks=pytest.mark.nightly) for case in (*NUMBERS, *VARIANTS, *FURTHER)),
]


@pytest.mark.parametrize("case", CASE, ids=lambda case: case.name)
def test_a_planted_bottleneck_is_the_first_line_with_its_cost(case: Bottleneck) -> None:
    found, twin = (advised(case, planted=planted) for planted in (True, False))
    cost_ps = found.scope.total_ps - twin.scope.total_ps
    assert cost_ps > 0
    first = found.findings[0]
    assert first.rule == case.rule
    assert first.cost_ps == pytest.approx(cost_ps, rel=0.1)
    assert case.advice in first.advice[0].text
    # The twin has not what the plant is named for, or little of it.
    assert not [
        each for each in twin.findings if each.rule == case.rule and each.kind == first.kind
    ]
