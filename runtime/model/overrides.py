"""The parts of the machine that differ from the rest: `overrides` of `topology.yaml`, by name.

    overrides:
      sip0.cube6.ucie.W: {bw_gbs: 16}
      cube3.pe*: {clock_ghz: 1.2}

A name is that of a component, of a link `a->b`, or of what contains components: a SIP, its IO
chiplet `io`, a cube, a PE with its crossbar and its slice. A `*` stands for any characters but a
dot; a name without a SIP is that in every SIP. The order of the overrides has no effect: where two
of them set one key of a part, that of the smaller container counts, and of equal ones that with
fewer `*`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import msgspec

from runtime.core.config.config_file import with_values
from runtime.core.config.section_keys import value_keys
from runtime.core.errors import nearest
from runtime.model.keys import HardwareKey
from runtime.model.part_keys import (
    LINK_KEY,
    UnknownPartKey,
    find_part_keys,
    key_of_link,
    keys_of_kind,
)
from runtime.model.schema.topology_schema import NodeKind, PartValue, Topology
from runtime.model.sip_grid import SipGrid
from runtime.model.sip_plan import SipPlan

Problem = tuple[str, str]
"""Key path and problem."""
DOWN = "down"
_SIP = re.compile(r"sip[0-9*]+")
_OF_LINK = 1 << 10
"""The rank of a link, which is no container."""


@dataclass
class SipParts:
    """The parts of one SIP that differ from the file.

    `values` has, for the name of a component, its keys by path with their values; `links` the
    bandwidth of a link by its name. What is `down` exists, and is not used: components and links.
    """

    values: dict[str, dict[str, PartValue]] = field(default_factory=dict[str, dict[str, PartValue]])
    links: dict[str, float] = field(default_factory=dict[str, float])
    down: set[str] = field(default_factory=set[str])

    @property
    def is_uniform(self) -> bool:
        """Whether the SIP is as the file has it."""
        return not (self.values or self.links or self.down)


class _Part(NamedTuple):
    """A component, a link or a container: its name in the SIP, and the components it stands for.

    `rank` orders parts that contain each other. `key` is that of the bandwidth of a link.
    """

    name: str
    rank: int
    nodes: tuple[tuple[str, NodeKind], ...]
    key: str = ""


class _Assigned(NamedTuple):
    """A value, the rank of the override that sets it, and the name of that."""

    rank: tuple[int, int]
    value: PartValue
    source: str


def parts_of(topology: Topology, sip: int) -> SipParts:
    """The parts of a SIP that differ from the file."""
    if not topology.overrides:
        return UNIFORM
    return _resolved(topology.encoded()).parts[sip]


def with_part_values(topology: Topology, values: Mapping[str, PartValue]) -> Topology:
    """The topology with the values of a part, by the paths of their keys."""
    content = with_values(topology.values(), values)
    del content["overrides"]
    return msgspec.convert(content, Topology)


def override_problems(topology: Topology) -> list[Problem]:
    """All that is wrong with the overrides of a topology which is valid otherwise."""
    return _resolved(topology.encoded()).problems if topology.overrides else []


UNIFORM = SipParts()
"""The parts of a SIP without overrides."""


# Each graph of a SIP reads it, and so do the rules.
@lru_cache(maxsize=8)
def _resolved(encoded: bytes) -> "_Resolution":
    return _Resolution(Topology.decoded(encoded))


class _Resolution:
    """The parts of all SIPs of a topology with overrides, and what is wrong with these."""

    def __init__(self, topology: Topology) -> None:
        self.problems: list[Problem] = []
        self._sips = topology.sips
        self._grid = SipGrid(topology)
        self._annotations = value_keys({}, Topology)
        self._plan = SipPlan(topology)
        shared = tuple(_parts(self._plan))
        self._parts = [
            {part.name: part for part in (*shared, *_of_ports(self._grid, sip, shared))}
            for sip in range(topology.sips)
        ]
        self._assigned: list[dict[tuple[str, str], list[_Assigned]]] = [{} for _ in self._parts]
        for name, settings in topology.overrides.items():
            self._override(name, settings)
        self.parts = [self._sip_parts(sip) for sip in range(self._sips)]

    def _override(self, name: str, settings: Mapping[str, PartValue]) -> None:
        path = f"overrides.{name}"
        matches = list(self._matches(name))
        if not matches:
            self.problems.append((path, f"no part of the machine{self._nearest(name)}"))
        for key, value in settings.items():
            # A problem of a key is that of all parts; one report is enough.
            problems = dict.fromkeys(
                problem
                for sip, part in matches
                for problem in self._set(sip, part, (name, key), value)
            )
            self.problems += [(f"{path}.{key}", problem) for problem in problems]

    def _matches(self, name: str) -> Iterator[tuple[int, _Part]]:
        of_sip, inside = _split(name)
        for sip in range(self._sips):
            if of_sip.fullmatch(f"sip{sip}"):
                if "*" not in inside:
                    part = self._parts[sip].get(_with_io(inside))
                    if part is not None:
                        yield sip, part
                    continue
                pattern = _pattern(_with_io(inside))
                for part in self._parts[sip].values():
                    # Ends of a link have dots, so that no pattern for components matches it.
                    if pattern.fullmatch(part.name):
                        yield sip, part

    def _nearest(self, name: str) -> str:
        of_sip, _ = _split(name)
        sips = [sip for sip in range(self._sips) if of_sip.fullmatch(f"sip{sip}")]
        prefix = name.partition(".")[0] + "." if _SIP.fullmatch(name.partition(".")[0]) else ""
        if not sips:
            return nearest(name.partition(".")[0], [f"sip{sip}" for sip in range(self._sips)])
        return nearest(name, [prefix + part for part in self._parts[sips[0]] if part])

    def _set(
        self, sip: int, part: _Part, named: tuple[str, str], value: PartValue
    ) -> Iterator[str]:
        """Set a key of a part; yields what is wrong with it."""
        name, given = named
        rank = part.rank, -_full(name).count("*")
        if given == DOWN:
            if not isinstance(value, bool):
                yield f"should be true or false, got {value:g}"
            elif value:
                self._assign(sip, (part.name, DOWN), _Assigned(rank, value, name))
            return
        if part.key and given not in {LINK_KEY, part.key}:
            yield f"unknown key of a link{nearest(given, [LINK_KEY, DOWN])}"
            return
        try:
            kinds = (kind for _, kind in part.nodes)
            keys = (key_of_link(part.key),) if part.key else find_part_keys(kinds, given)
        except UnknownPartKey as error:
            yield str(error)
            return
        for key in keys:
            typed = _typed(key, value)
            problems = self._value_problems(key.path, typed)
            yield from problems
            if problems:
                continue
            if part.key:
                self._assign(sip, (part.name, LINK_KEY), _Assigned(rank, typed, name))
            for node, kind in part.nodes:
                if key.path in keys_of_kind(kind):
                    self._assign(sip, (node, key.path), _Assigned(rank, typed, name))

    def _value_problems(self, path: str, value: PartValue) -> list[str]:
        # Imported here: an LP receives checked values.
        from runtime.core.config.section_problems import value_problems

        return [text for _, text in value_problems(value, self._annotations[path], path, Topology)]

    def _assign(self, sip: int, target: tuple[str, str], assigned: _Assigned) -> None:
        self._assigned[sip].setdefault(target, []).append(assigned)

    def _sip_parts(self, sip: int) -> SipParts:
        """The parts of a SIP; adds the problems of values that are equally near to a part."""
        parts = SipParts()
        for (name, key), assigned in self._assigned[sip].items():
            rank = max(each.rank for each in assigned)
            value, *others = [each for each in assigned if each.rank == rank]
            for other in others:
                if other.value != value.value:
                    problem = f"{other.value:g} for sip{sip}.{name}, {value.value:g} by "
                    problem += f"{value.source!r}, and both are equally near to it"
                    self.problems.append((f"overrides.{other.source}.{key}", problem))
            if key == DOWN:
                parts.down.add(name)
            elif key == LINK_KEY:
                parts.links[name] = float(value.value)
            else:
                parts.values.setdefault(name, {})[key] = value.value
        return parts


def _parts(plan: SipPlan) -> Iterator[_Part]:
    """The parts of every SIP, but for those which are or contain ports to other SIPs."""
    nodes = [(node.name, node.kind) for node in plan.components]
    yield _Part("", 1, tuple(nodes))
    yield _Part("io", 2, tuple(each for each in nodes if each[0].startswith("io.")))
    by_container: dict[str, list[tuple[str, NodeKind]]] = {}
    for node in plan.components:
        if node.name.startswith("cube"):
            cube, _, rest = node.name.partition(".")
            by_container.setdefault(cube, []).append((node.name, node.kind))
            if node.kind in {"pe", "xbar", "hbm_ctrl"}:
                pe = f"{cube}.{rest.partition('.')[0]}"
                by_container.setdefault(pe, []).append((node.name, node.kind))
    for name, contained in by_container.items():
        yield _Part(name, 2 + name.count("."), tuple(contained))
    for node in nodes:
        if node[0] not in by_container:
            yield _Part(node[0], 9, (node,))
    for wire in plan.wires:
        a, b = plan.components[wire.a].name, plan.components[wire.b].name
        if wire.key:
            yield _Part(f"{a}->{b}", _OF_LINK, (), wire.key)
            yield _Part(f"{b}->{a}", _OF_LINK, (), wire.key)


def _of_ports(grid: SipGrid, sip: int, shared: Iterable[_Part]) -> Iterator[_Part]:
    """The ports of a SIP to other SIPs, and the containers that they add to."""
    ports: tuple[tuple[str, NodeKind], ...] = tuple((port, "ucie") for port in grid.ports(sip))
    for port in ports:
        yield _Part(port[0], 9, (port,))
    for part in shared:
        if part.name in {"", "io"}:
            yield part._replace(nodes=(*part.nodes, *ports))


def _typed(key: HardwareKey, value: PartValue) -> PartValue:
    """The value as the key has it: a count is an integer."""
    is_whole = isinstance(value, float) and value.is_integer()
    return int(value) if key.kind == "integer" and is_whole else value


def _full(name: str) -> str:
    """The name with its SIP, `sip*` where it has none."""
    return name if _SIP.fullmatch(name.partition(".")[0]) else f"sip*.{name}"


def _split(name: str) -> tuple[re.Pattern[str], str]:
    """The pattern of the SIPs, and the name inside of them."""
    sips, _, inside = _full(name).partition(".")
    # Links are named by both of their ends, each of which may have the SIP.
    return _pattern(sips), inside.replace(f"->{sips}.", "->")


def _with_io(name: str) -> str:
    """The name of a port to another SIP with that of the chiplet: reports leave it out."""
    return f"io.{name}" if name.startswith("ucie.") else name


def _pattern(name: str) -> re.Pattern[str]:
    return re.compile(re.escape(name).replace(r"\*", "[^.>]+"))
