"""The checks of chains see a model whose passes cost something else."""

from collections.abc import Callable

import pytest

from kernbench.oracle.checks.engines.vector_chains import chains, chains_in_flight
from kernbench.oracle.theory.topology_file import TopologyFile
from runtime.language.chain import ChainPlan
from sip_node.chip.pe.compute.vector_chains import VectorChains
from sip_node.chip.pe.compute.vector_times import ChainStream, EngineCycles
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


def test_chains_that_wait_for_the_end_of_others_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = VectorChains._next

    def at_the_end(chains: VectorChains) -> None:
        engine, free_ps = chains._engine, chains._calendar.free_ps
        if free_ps > engine.now_ps:
            engine.at(free_ps, at_the_end, chains)
        else:
            plain(chains)

    monkeypatch.setattr(VectorChains, "_next", at_the_end)
    assert missed(lambda: chains_in_flight(FILE)) == {"engine", "fetch"}
    assert missed(lambda: chains(FILE)) == set()
