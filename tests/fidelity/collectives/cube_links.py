"""Bytes on the links between the cubes of a SIP under `intercube`: a line of cubes."""

from collections.abc import Iterator
from math import nan
from typing import NamedTuple

from kernbench.oracle.checks.check import Check
from kernbench.oracle.checks.collectives.all_reduce_runs import (
    AllReduce,
    AllReduceOutcome,
    AllReduceQueue,
    on_direct_links,
    outcome_of,
)
from kernbench.oracle.theory.collectives.all_reduce_traffic import credits_bytes, link_loads
from kernbench.oracle.theory.kernels.kernel_costs import ITEM_BYTES
from kernbench.oracle.theory.paths.sip_grid import SipGrid
from kernbench.oracle.theory.topology_file import TopologyFile
from runtime.model.graph import ChipGraph
from runtime.model.topology import parse_topology

SIPS = 2
COLUMNS, ROWS = 3, 2
ELEMENTS = 1000
"""Elements per cube; twice as many fit into one block."""
QUEUE = AllReduceQueue(packet_bytes=1024)


class LinkRole(NamedTuple):
    """A class of links: its description, and the bytes that n more bytes per cube add to each."""

    text: str
    formula: str
    load: int


def cube_links(file: TopologyFile) -> list[Check]:
    """The bytes that n more bytes per cube add to each link.

    The difference of two runs: the messages of the host are the same for any n and cancel out.
    """
    # The root cube is the last one. With the IO chiplet on its side, the exchange between SIPs
    # passes no other cube.
    values = {"sip.cube_mesh": {"w": COLUMNS, "h": ROWS}, "sip.io_chiplet.edge": "S"}
    file = on_direct_links(file, SIPS).with_values(values)
    once, twice = (
        outcome_of(file, AllReduce("intercube", 1, times * ELEMENTS, QUEUE)) for times in (1, 2)
    )
    return list(_checks(ChipGraph(parse_topology(file.text, "topology", SIPS)), once, twice))


def _checks(graph: ChipGraph, once: AllReduceOutcome, twice: AllReduceOutcome) -> Iterator[Check]:
    more = ELEMENTS * ITEM_BYTES
    links = _links_by_role(graph)
    for name, role in _roles(more).items():
        added = {
            index: twice.inside.get(index, nan) - once.inside.get(index, nan)
            for index in links[name]
        }
        # Comparisons with nan are false: without results, max() returns the first link.
        index = max(added, key=lambda each: abs(added[each] - role.load))
        link = graph.links[index]
        source, target = (graph.nodes[end].name for end in (link.source, link.target))
        text = f"intercube, {more} more B per cube: added bytes, {role.text}, {source} to {target}"
        yield Check(
            id=f"i.cubes.{name}",
            text=twice.described(once.described(text)),
            formula=role.formula,
            expected=role.load,
            measured=added[index],
            unit="B",
        )


def _roles(more: int) -> dict[str, LinkRole]:
    """The expected additional bytes by the role of a link, for `more` bytes per cube."""
    # Bytes of a line that reduces and broadcasts n bytes: n + credits, per link and direction.
    line = more + credits_bytes(2 * more, QUEUE) - credits_bytes(more, QUEUE)
    before, after = (
        link_loads("intercube", SipGrid(SIPS), times * ELEMENTS, QUEUE)[0, 1] for times in (1, 2)
    )
    return {
        "row": LinkRole("between cubes of a row", "n + credits", line),
        "column": LinkRole("between cubes of the root's column", "n + credits", line),
        "idle": LinkRole("between other cubes, or these and the IO chiplet", "0", 0),
        "root": LinkRole(
            "between the root cube and the IO chiplet", "2(p-1)/p n + credits", after - before
        ),
    }


def _links_by_role(graph: ChipGraph) -> dict[str, list[int]]:
    """The indices of the UCIe links between different chiplets, by role."""
    indices: dict[str, list[int]] = {}
    for link in graph.links:
        source, target = graph.nodes[link.source], graph.nodes[link.target]
        if source.kind == target.kind == "ucie" and source.cube != target.cube:
            role = _role(*sorted((source.cube, target.cube)))
            indices.setdefault(role, []).append(link.index)
    return indices


def _role(cube: int, other: int) -> str:
    """The role of the link between two cubes, `other` being the larger number.

    The number of the IO chiplet is negative.
    """
    in_last_column = other % COLUMNS == COLUMNS - 1
    if cube < 0:
        return "root" if in_last_column else "idle"
    if other - cube == 1:
        return "row"
    return "column" if in_last_column else "idle"
