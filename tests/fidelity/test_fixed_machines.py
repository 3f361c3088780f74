"""The checks on machines of their own, on the file that ships: each is within its tolerance."""

import pytest

from kernbench.oracle.checks.plan import missed, run
from tests.fidelity.plan import MESH_COST, fixed_parts
from tests.support.topologies import default_text

pytestmark = [pytest.mark.fidelity, pytest.mark.slow]


def _prefixes() -> list[object]:
    """One prefix for each part; the loads of the mesh take as long as all others together."""
    costs: dict[str, int] = {}
    for part in fixed_parts(1):
        costs[part.prefix] = max(part.cost, costs.get(part.prefix, 0))
    return [
        pytest.param(prefix, marks=pytest.mark.nightly if cost == MESH_COST else ())
        for prefix, cost in costs.items()
    ]


@pytest.mark.parametrize("prefix", _prefixes())
def test_the_checks_of_a_part_are_within_their_tolerance(prefix: str) -> None:
    chosen = [part for part in fixed_parts(1) if part.prefix == prefix]
    checks = list(run(default_text(), chosen, prefix))
    assert checks
    assert missed(checks) == []
