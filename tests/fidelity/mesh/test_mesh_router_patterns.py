"""Latencies of routers under patterns: the compared ones, and their number of seeds."""

from types import SimpleNamespace

import pytest

from kernbench.oracle.theory.topology_file import TopologyFile
from tests.fidelity.mesh import mesh_router_patterns
from tests.fidelity.mesh.mesh_network import MeshRouter, Traffic
from tests.fidelity.mesh.mesh_router_patterns import pattern_latency, pattern_loads
from tests.support.topologies import default_text


@pytest.mark.parametrize("full", [False, True])
def test_the_hot_spot_is_compared_up_to_nine_tenths_of_saturation(full: bool) -> None:
    loads = {
        (name, load) for name, pattern, load, _ in pattern_loads(full=full) if "hot" in pattern
    }
    assert {(name, load) for name in ("r1", "r2") for load in (0.34, 0.36)} <= loads


@pytest.mark.parametrize(("load", "mean"), [(0.34, 3.0), (0.36, 6.5)])
def test_a_load_at_which_seeds_differ_is_a_mean_of_several(
    load: float, mean: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Network:
        def __init__(self, file: TopologyFile, router: MeshRouter) -> None: ...

        def run(self, traffic: Traffic, cycles: int, warmup: int) -> SimpleNamespace:
            return SimpleNamespace(latency_cycles=float(traffic.seed))

    monkeypatch.setattr(mesh_router_patterns, "MeshNetwork", Network)
    file = TopologyFile.of(default_text())
    [check] = pattern_latency(file, 3, "r1", "hotspot", load, 100)
    assert check.measured == mean
