"""Conditions under which the steps of a product are computed ahead."""

import pytest

from kernbench.oracle.theory.topology_file import TopologyFile
from runtime.core.compiled.choice import IS_COMPILED
from runtime.core.errors import UsageError
from runtime.model.topology import parse_topology
from sip_node.chip.fast_forward import fast_forward
from sip_node.pdes.engine import Engine
from tests.support.topologies import default_text

MACHINE = parse_topology(default_text(), "topology.yaml")


@pytest.mark.parametrize("value", ["", "1"])
def test_it_is_part_of_the_compiled_core(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNBENCH_FAST_FORWARD", value)
    assert (fast_forward(Engine(), MACHINE) is not None) == IS_COMPILED


def test_the_user_switches_it_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNBENCH_FAST_FORWARD", "0")
    assert fast_forward(Engine(), MACHINE) is None


def test_another_value_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNBENCH_FAST_FORWARD", "off")
    with pytest.raises(UsageError, match=r"KERNBENCH_FAST_FORWARD is 'off': 0 simulates every"):
        fast_forward(Engine(), MACHINE)


def test_links_with_jitter_have_none() -> None:
    late = TopologyFile.of(default_text()).with_values({"jitter.crossing_ns": 1.0})
    assert fast_forward(Engine(), parse_topology(late.text, "topology.yaml")) is None
