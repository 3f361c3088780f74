"""The checks of chains see a model whose passes cost something else."""

from collections.abc import Callable
from typing import Any

import pytest

from kernbench.oracle.checks.engines.vector_chains import chains, chains_in_flight
from kernbench.oracle.theory.topology_file import TopologyFile
from runtime.language.chain import ChainPlan
from sip_node.chip.pe.compute import math
from sip_node.chip.pe.compute.vector_chains import VectorCalendar, VectorChains
from sip_node.chip.pe.compute.vector_times import ChainStream, EngineCycles
from sip_node.chip.pe.context import PeContext
from tests.support.topologies import default_text

FILE = TopologyFile.of(default_text())


def missed(checks: Callable[[], list]) -> set[str]:
    """The last part of the id of each check that does not pass."""
    return {check.id.rsplit(".", 1)[-1] for check in checks() if not check.passed}


def test_all_chains_are_right() -> None:
    assert missed(lambda: chains(FILE)) == missed(lambda: chains_in_flight(FILE)) == set()


def test_a_chain_without_trees_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = ChainStream.__init__

    def without_tree(stream: ChainStream, plan: ChainPlan, each, cycles: EngineCycles) -> None:
        plain(stream, plan, each, cycles._replace(tree=0))

    monkeypatch.setattr(ChainStream, "__init__", without_tree)
    reducing = {"softmax", "online", "layer_norm", "small", "totals"}
    assert missed(lambda: chains(FILE)) == reducing


class AtTheEnd(VectorChains):
    """Chains that begin when the engine has ended all others."""

    def __init__(self, context: PeContext, calendar: VectorCalendar, *parts: Any) -> None:
        super().__init__(context, calendar, *parts)
        self._busy = calendar

    def proceed(self, step: int, subject: Any) -> None:
        engine, free_ps = self.engine, self._busy.free_ps
        if subject is None and free_ps > engine.now_ps:
            engine.at(free_ps, self.proceed, step, subject)
        else:
            super().proceed(step, subject)


def test_chains_that_wait_for_the_end_of_others_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(math, "VectorChains", AtTheEnd)
    assert missed(lambda: chains_in_flight(FILE)) == {"engine", "fetch"}
    assert missed(lambda: chains(FILE)) == set()
