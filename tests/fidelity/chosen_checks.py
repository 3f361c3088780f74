"""Checks by the start of their ids, run in this process, for tests with wrong models."""

from collections.abc import Iterable

from kernbench.oracle.checks.check import Check
from kernbench.oracle.checks.plan import missed, run
from tests.fidelity.plan import every_part
from tests.support.topologies import default_text


def checks(*prefixes: str, text: str = default_text(), seed: int = 1) -> list[Check]:
    """The checks whose ids start with `prefixes`."""
    every = every_part(seed)
    return [
        check
        for prefix in prefixes
        for check in run(text, [part for part in every if part.may_match(prefix)], prefix)
    ]


def missed_ids(chosen: Iterable[Check]) -> set[str]:
    """The ids of the checks that are out of tolerance."""
    return {check.id for check in missed(chosen)}
