"""Routes round what is down, by theory and by the model, on random machines."""

from itertools import product
from random import Random
from typing import Any

import pytest

from kernbench.oracle.theory.paths.floor_plan import FloorPlan
from kernbench.oracle.theory.paths.routes import RouteEnd
from kernbench.oracle.theory.topology_file import TopologyFile
from runtime.core.errors import ConfigError
from runtime.model.graph import ChipGraph
from runtime.model.routing import ChipRoutes
from runtime.model.sip_fabric import SipFabric
from runtime.model.topology import Topology
from tests.support.topologies import variant

DOWN = {"down": True}


def drawn(seed: int) -> Topology | None:
    """A machine with parts that are down; None if that leaves no route."""
    draw = Random(seed)
    sips = draw.choice((1, 2, 4, 6))
    changes: dict[str, Any] = {
        "sip__cube_mesh": {"w": draw.randint(1, 4), "h": draw.randint(1, 4)},
        "sip__io_chiplet__edge": draw.choice("NESW"),
        "cube__pe_layout__pe_per_corner": 1,
        "system__sips__count": sips,
    }
    if sips == 6:
        changes["system__sips__topology"] = draw.choice(("torus_2d", "mesh_2d_no_wrap"))
        changes |= {"system__sips__w": 3, "system__sips__h": 2}
    plain = variant(**changes)
    graph, fabric = ChipGraph(plain), SipFabric(plain)
    names = [node.name for node in graph.nodes if node.kind == "ucie"]
    names += [f"cube{cube}" for cube in range(plain.cubes)]
    names += [name for name in graph.link_names if name.count("router.r") == 2][::7]
    down = draw.sample(names, min(len(names), draw.randint(1, 4)))
    if sips > 2:
        down.append(f"sip0.ucie.sip{draw.choice(fabric.neighbours(0))}")
    try:
        return variant(**changes, overrides=dict.fromkeys(down, DOWN))
    except ConfigError:
        return None


def check(seeds: range) -> None:
    machines = [machine for machine in map(drawn, seeds) if machine is not None]
    assert len(machines) > len(seeds) / 2
    for machine in machines:
        plan, sips = FloorPlan(TopologyFile(machine.values())), SipFabric(machine)
        graph = ChipGraph(machine, 0)
        routes = ChipRoutes(graph)
        cubes = [cube for cube in range(machine.cubes) if cube not in graph.down.cubes]
        ends = [(graph.m_cpu(cube), RouteEnd("m_cpu", 0, cube)) for cube in cubes]
        ends.append((graph.host, RouteEnd("host")))
        for (source, from_end), (target, to_end) in product(ends, ends):
            if source != target:
                nodes = [graph.nodes[node].name for node in routes.route(source, target).nodes]
                assert [hop.node for hop in plan.route(from_end, to_end)] == nodes[1:]
        for source, target in product(range(machine.sips), repeat=2):
            assert list(plan.sip_path(source, target)) == list(sips.path(source, target))


def test_theory_and_model_have_the_same_routes_round_what_is_down() -> None:
    check(range(12))


@pytest.mark.nightly
def test_theory_and_model_have_the_same_routes_on_many_machines() -> None:
    check(range(12, 300))
