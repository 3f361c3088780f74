"""The picture of a SIP shows every component of the graph, for every edge of the IO chiplet."""

from typing import Any

import pytest

from tests.support.sip_picture import sip_picture
from tests.support.topologies import variant


def names(picture: Any) -> list[list[str]]:
    return [[text.get_text() for text in axes.texts] for axes in picture.axes]


@pytest.mark.parametrize("edge", ["N", "S", "W", "E"])
def test_both_panels_name_their_components(edge: str):
    mesh, cube = names(
        sip_picture(variant(sip__cube_mesh={"w": 3, "h": 3}, sip__io_chiplet__edge=edge))
    )
    assert [text for text in mesh if text.isdigit()] == [str(number) for number in range(9)]
    assert {"IO NoC", "IO CPU", "PCIe endpoint", "host"} <= set(mesh)
    assert mesh.count("to another SIP") == 2
    assert {f"PE {pe}" for pe in range(8)} <= set(cube)
    assert {f"slice\n{pe}" for pe in range(8)} <= set(cube)
    # The enlarged cube is in the middle, with a neighbour on every side.
    assert {"UCIe N", "UCIe S", "UCIe W", "UCIe E", "SRAM", "M_CPU"} <= set(cube)
