"""The links between the cubes of a SIP under `intercube`: to the byte, by the formula of a line of cubes."""

from collections.abc import Iterator
from math import nan

from kernbench.validate.all_reduce_runs import (
    ITEM_BYTES,
    AllReduce,
    Outcome,
    Queues,
    on_direct_links,
    outcome_of,
)
from kernbench.validate.all_reduce_traffic import SipGrid, line_load, link_loads
from kernbench.validate.check import Check
from kernbench.validate.variant import Variant
from runtime.model.graph import ChipGraph
from runtime.model.topology import parse_topology

SIPS = 2
COLUMNS, ROWS = 3, 2
ELEMENTS = 1000
"""Of a cube; twice as many fit a block."""


def cube_links(file: Variant) -> list[Check]:
    """What n bytes more a cube add to every link: maps and commands of the host are the same, whatever n is."""
    # The root cube is the last one; with the IO chiplet on its side, the exchange between SIPs passes no other cube.
    values = {"sip.cube_mesh": {"w": COLUMNS, "h": ROWS}, "sip.io_chiplet.edge": "S"}
    file, queues = on_direct_links(file, SIPS).with_values(values), Queues(packet_bytes=1024)
    once, twice = (
        outcome_of(file, AllReduce("intercube", 1, times * ELEMENTS, queues)) for times in (1, 2)
    )
    return list(
        _checks(ChipGraph(parse_topology(file.text, "topology", SIPS)), queues, once, twice)
    )


def _checks(graph: ChipGraph, queues: Queues, once: Outcome, twice: Outcome) -> Iterator[Check]:
    more = ELEMENTS * ITEM_BYTES
    line = line_load(2 * more, queues) - line_load(more, queues)
    before, after = (
        link_loads("intercube", SipGrid(SIPS), times * ELEMENTS, queues)[0, 1] for times in (1, 2)
    )
    expected = {
        "row": ("cubes of a row", "n + credits", line),
        "column": ("cubes of the root's column", "n + credits", line),
        "idle": ("other cubes, or one of these and the IO chiplet", "0", 0),
        "root": ("the root cube and the IO chiplet", "2(p-1)/p n + credits", after - before),
    }
    places = _places(graph)
    for name, (where, formula, load) in expected.items():
        added = {
            index: twice.inside.get(index, nan) - once.inside.get(index, nan)
            for index in places[name]
        }
        # A nan is never the largest: where nothing was measured, any link stands for all.
        index = max(added, key=lambda each: abs(added[each] - load))
        source, target = (
            graph.nodes[end].name for end in (graph.links[index].source, graph.links[index].target)
        )
        says = f"intercube, {more} B a cube more: bytes more between {where}, {source} to {target}"
        yield Check(
            f"i.cubes.{name}", twice.said(once.said(says)), formula, load, added[index], 0, "B"
        )


def _places(graph: ChipGraph) -> dict[str, list[int]]:
    """The UCIe links by what they are for."""
    found: dict[str, list[int]] = {}
    for link in graph.links:
        source, target = graph.nodes[link.source], graph.nodes[link.target]
        if source.kind == target.kind == "ucie" and source.cube != target.cube:
            found.setdefault(_place(*sorted((source.cube, target.cube))), []).append(link.index)
    return found


def _place(cube: int, other: int) -> str:
    """What a link is for, by the cubes that it joins, `other` being the larger one; the IO chiplet has a negative number."""
    last = other % COLUMNS == COLUMNS - 1
    if cube < 0:
        return "root" if last else "idle"
    if other - cube == 1:
        return "row"
    return "column" if last else "idle"
