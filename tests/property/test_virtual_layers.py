"""No legal topology has a cycle of channels: cubes and holes, IO chiplets, networks of SIPs."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.core.errors import ConfigError
from runtime.model.schema.topology_schema import Topology
from tests.support.channel_dependencies import cycle_of_channels, no_layers, virtual_layers
from tests.support.topologies import variant

LONE_CUBE = {"sip__cube_mesh": {"w": 1, "h": 1}, "cube__pe_layout__pe_per_corner": 1}
CORNERS = ("NW", "NE", "SW", "SE")


@st.composite
def chips(draw: st.DrawFn) -> Topology:
    """Cubes of any grid, hole and positions: 1 to 6 of them round one IO chiplet."""
    coordinate = st.integers(0, 12).map(float)
    point = st.tuples(coordinate, coordinate).map(list)
    width = draw(st.integers(1, 3))
    ends = [sorted(draw(point)) for _ in "xy"]
    changes: dict[str, object] = {
        "sip__cube_mesh": {"w": width, "h": draw(st.integers(1, 6 // width))},
        "sip__io_chiplet__edge": draw(st.sampled_from("NESW")),
        "system__sips__count": draw(st.integers(1, 2)),
        "cube__noc__rows": draw(st.integers(1, 7)),
        "cube__noc__cols": draw(st.integers(1, 7)),
        "cube__noc__hbm_hole_mm": [ends[0][0], ends[1][0], ends[0][1], ends[1][1]],
        "cube__pe_layout__pe_per_corner": 1,
    }
    if draw(st.booleans()):
        changes["cube__ucie_pos_mm"] = {side: draw(point) for side in "NESW"}
    if draw(st.booleans()):
        changes["cube__pe_layout__pos_mm"] = {corner: [draw(point)] for corner in CORNERS}
        changes["cube__m_cpu__pos_mm"] = draw(point)
        changes["cube__sram__pos_mm"] = draw(point)
    try:
        return variant(**changes)
    except ConfigError:
        # A hole that takes all routers, or cuts the grid in two.
        changes["cube__noc__hbm_hole_mm"] = [4.0, 4.0, 4.0, 4.0]
        return variant(**changes)


@st.composite
def systems(draw: st.DrawFn) -> Topology:
    """SIPs of a few components in every kind of network."""
    kind = draw(st.sampled_from(["ring_1d", "torus_2d", "mesh_2d", "mesh_2d_no_wrap"]))
    grid = {"system__sips__topology": kind, "system__sips__count": draw(st.integers(1, 9))}
    if kind != "ring_1d":
        columns, rows = draw(st.integers(1, 6)), draw(st.integers(1, 3))
        grid |= {"system__sips__w": columns, "system__sips__h": rows}
        grid["system__sips__count"] = columns * rows
    fabric = draw(st.sampled_from(["direct", "switch"]))
    return variant(**LONE_CUBE, **grid, system__sips__fabric=fabric)


@pytest.mark.slow
@settings(max_examples=8)
@given(chips())
def test_the_routes_of_any_chip_have_no_cycle_of_channels(topology: Topology) -> None:
    assert cycle_of_channels(topology, virtual_layers(topology)) == []


@pytest.mark.slow
@settings(max_examples=8)
@given(systems())
def test_the_routes_between_sips_have_no_cycle_of_channels(topology: Topology) -> None:
    assert cycle_of_channels(topology, virtual_layers(topology)) == []


@pytest.mark.nightly
@settings(max_examples=400)
@given(st.one_of(chips(), systems()))
def test_many_topologies_have_no_cycle_of_channels(topology: Topology) -> None:
    assert cycle_of_channels(topology, virtual_layers(topology)) == []


@pytest.mark.parametrize("sips", [4, 5])
def test_a_ring_of_sips_without_layers_has_a_cycle(sips: int) -> None:
    topology = variant(**LONE_CUBE, system__sips__count=sips)
    assert cycle_of_channels(topology, no_layers(topology))
    assert not cycle_of_channels(topology, virtual_layers(topology))


def test_a_torus_of_sips_without_layers_has_a_cycle() -> None:
    grid = {"system__sips__topology": "torus_2d", "system__sips__count": 16}
    topology = variant(**LONE_CUBE, **grid)
    assert cycle_of_channels(topology, no_layers(topology))
    assert not cycle_of_channels(topology, virtual_layers(topology))
