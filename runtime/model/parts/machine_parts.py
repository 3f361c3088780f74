"""The parts of the machine by name: components, links, and what contains components.

Names of components are those of the plan of a SIP. Reports name ports to other SIPs without the
chiplet, `ucie.sip1`, and the engines of a PE beside it, `cube3.pe0.pe_gemm`; both are names here.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from runtime.core.errors import nearest
from runtime.model.grid_of_sips import GridOfSips
from runtime.model.schema.topology_schema import PartKind, Topology
from runtime.model.sip_plan import SipPlan

_SIP = re.compile(r"sip[0-9*]+")
_ENGINES = ("cpu", "scheduler", "mmu", "dma", "ipcq", "tcm", "fetch_store", "gemm", "math")
"""The engines of a PE by their sections; reports name them `cube3.pe0.pe_gemm`."""
_OF_LINK = 1 << 10
"""The rank of a link, which is no container."""


class MachinePart(NamedTuple):
    """A component, a link or a container: its name in the SIP, and the components it stands for.

    `rank` orders parts that contain each other. `key` is that of the bandwidth of a link, `section`
    that of an engine of a PE.
    """

    name: str
    rank: int
    nodes: tuple[tuple[str, PartKind], ...]
    key: str = ""
    section: str = ""


class MachineParts:
    """The parts of all SIPs of a topology."""

    def __init__(self, topology: Topology) -> None:
        grid = GridOfSips(topology)
        shared = tuple(_parts(SipPlan(topology)))
        self._parts = [
            {part.name: part for part in (*shared, *_of_ports(grid, sip, shared))}
            for sip in range(topology.sips)
        ]

    def matches(self, name: str) -> Iterator[tuple[int, MachinePart]]:
        """The parts with a name, each with its SIP."""
        sips, inside = _split(name)
        of_sip, pattern = _pattern(sips), _pattern(inside)
        for sip, parts in enumerate(self._parts):
            if not of_sip.fullmatch(f"sip{sip}"):
                continue
            if "*" not in inside:
                yield from ((sip, parts[each]) for each in (inside,) if each in parts)
                continue
            # Ends of a link have dots, so that no pattern for components matches it.
            yield from ((sip, part) for part in parts.values() if pattern.fullmatch(part.name))

    def nearest(self, name: str) -> str:
        """The part whose name is nearest, as the end of an error."""
        of_sip = _pattern(_split(name)[0])
        sips = [f"sip{sip}" for sip in range(len(self._parts))]
        first = next((sip for sip, each in enumerate(sips) if of_sip.fullmatch(each)), None)
        sip = name.partition(".")[0]
        if first is None:
            return nearest(sip, sips)
        prefix = f"{sip}." if _SIP.fullmatch(sip) else ""
        return nearest(name, [prefix + part for part in self._parts[first] if part])


def _parts(plan: SipPlan) -> Iterator[MachinePart]:
    """The parts of every SIP, but for those which are or contain ports to other SIPs."""
    nodes: list[tuple[str, PartKind]] = [(node.name, node.kind) for node in plan.components]
    yield from _of_components(nodes)
    for wire in plan.wires:
        a, b = plan.components[wire.a].name, plan.components[wire.b].name
        if wire.key:
            yield MachinePart(f"{a}->{b}", _OF_LINK, (), wire.key)
            yield MachinePart(f"{b}->{a}", _OF_LINK, (), wire.key)


def _of_components(nodes: Sequence[tuple[str, PartKind]]) -> Iterator[MachinePart]:
    """The components, the engines of the PEs among them, and all that contains components."""
    yield MachinePart("", 1, tuple(nodes))
    yield MachinePart("io", 2, tuple(each for each in nodes if each[0].startswith("io.")))
    by_container: dict[str, list[tuple[str, PartKind]]] = {}
    for node in nodes:
        cube, pe = node[0].split(".")[:1], node[0].split(".")[:2]
        if node[0].startswith("cube"):
            by_container.setdefault(cube[0], []).append(node)
        if node[1] in {"pe", "xbar", "hbm_ctrl"}:
            by_container.setdefault(".".join(pe), []).append(node)
    for name, contained in by_container.items():
        yield MachinePart(name, 2 + name.count("."), tuple(contained))
    for node in nodes:
        if node[0] not in by_container:
            yield MachinePart(node[0], 9, (node,))
        elif node[1] == "pe":
            for engine in _ENGINES:
                yield MachinePart(f"{node[0]}.pe_{engine}", 9, (node,), section=f"pe.{engine}.")


def _of_ports(grid: GridOfSips, sip: int, shared: Iterable[MachinePart]) -> Iterator[MachinePart]:
    """The ports of a SIP to other SIPs, and the containers that they add to."""
    ports: tuple[tuple[str, PartKind], ...] = tuple((port, "sip_port") for port in grid.ports(sip))
    for port in ports:
        yield MachinePart(port[0], 9, (port,))
    for part in shared:
        if part.name in {"", "io"}:
            yield part._replace(nodes=(*part.nodes, *ports))


def full_name(name: str) -> str:
    """The name with its SIP, `sip*` where it has none."""
    return name if _SIP.fullmatch(name.partition(".")[0]) else f"sip*.{name}"


def _split(name: str) -> tuple[str, str]:
    """The name of the SIPs, and the name inside of them."""
    sips, _, inside = full_name(name).partition(".")
    # Links are named by both of their ends, each of which may have the SIP.
    inside = inside.replace(f"->{sips}.", "->")
    # A port to another SIP has the name of the chiplet, which reports leave out.
    return sips, f"io.{inside}" if inside.startswith("ucie.") else inside


def _pattern(name: str) -> re.Pattern[str]:
    return re.compile(re.escape(name).replace(r"\*", "[^.>]+"))
