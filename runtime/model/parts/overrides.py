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

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import msgspec

from runtime.core.config.config_file import value_at, with_values
from runtime.core.config.section_keys import value_keys
from runtime.core.errors import nearest
from runtime.model.keys import HardwareKey
from runtime.model.parts.down_parts import may_be_down
from runtime.model.parts.machine_parts import MachinePart, MachineParts, full_name
from runtime.model.parts.part_keys import (
    LINK_KEY,
    UnknownPartKeyError,
    find_part_keys,
    key_of_link,
    keys_of_kind,
)
from runtime.model.schema.topology_schema import PartValue, Topology

Problem = tuple[str, str]
"""Key path and problem."""
DOWN = "down"


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


def value_of_part(topology: Topology, name: str, key: str) -> PartValue:
    """The present value of a key of the first part with a name.

    Raises `UnknownPartKeyError` for a part or a key that does not exist.
    """
    resolution = _resolved(topology.encoded())
    parts = list(resolution.machine.matches(name))
    if not parts:
        raise UnknownPartKeyError(f"no part of the machine{resolution.machine.nearest(name)}")
    sip, part = parts[0]
    own = resolution.parts[sip]
    if key == DOWN:
        return part.name in own.down
    if part.key:
        path, ends = part.key, part.name.split("->")
        if part.name in own.links:
            return own.links[part.name]
    else:
        path = _keys_of(part, key)[0].path
        ends = [node for node, kind in part.nodes if path in keys_of_kind(kind)]
    values = [own.values.get(each, {}).get(path) for each in ends]
    present = next((each for each in values if each is not None), None)
    default: PartValue = value_at(topology.values(), path)
    return default if present is None else present


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
        self.machine = MachineParts(topology)
        self._annotations = value_keys({}, Topology)
        sips = range(topology.sips)
        self._assigned: list[dict[tuple[str, str], list[_Assigned]]] = [{} for _ in sips]
        for name, settings in topology.overrides.items():
            self._override(name, settings)
        self.parts = [self._sip_parts(sip) for sip in sips]

    def _override(self, name: str, settings: Mapping[str, PartValue]) -> None:
        path = f"overrides.{name}"
        matches = list(self.machine.matches(name))
        if not matches:
            self.problems.append((path, f"no part of the machine{self.machine.nearest(name)}"))
        for key, value in settings.items():
            # A problem of a key is that of all parts; one report is enough.
            problems = dict.fromkeys(
                problem
                for sip, part in matches
                for problem in self._set(sip, part, (name, key), value)
            )
            self.problems += [(f"{path}.{key}", problem) for problem in problems]

    def _set(
        self, sip: int, part: MachinePart, named: tuple[str, str], value: PartValue
    ) -> Iterator[str]:
        """Set a key of a part; yields what is wrong with it."""
        name, given = named
        rank = part.rank, -full_name(name).count("*")
        if given == DOWN and not part.section:
            if not isinstance(value, bool):
                yield f"should be true or false, got {value:g}"
            elif value and not may_be_down(part.name):
                yield _cannot_be_down(sip, part.name)
            elif value:
                self._assign(sip, (part.name, DOWN), _Assigned(rank, value, name))
            return
        try:
            keys = _keys_of(part, given)
        except UnknownPartKeyError as error:
            yield str(error)
            return
        for key in keys:
            typed = _typed(key, value)
            problems = self._value_problems(key.path, typed)
            yield from problems
            targets = [
                (node, key.path) for node, kind in part.nodes if key.path in keys_of_kind(kind)
            ]
            if part.key:
                targets = [(part.name, LINK_KEY)]
            for target in () if problems else targets:
                self._assign(sip, target, _Assigned(rank, typed, name))

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


def _cannot_be_down(sip: int, name: str) -> str:
    if name in {"", "io"}:
        return (
            f"rank {sip} and its collectives need sip{sip}{name and f'.{name}'}; its links can be "
            f"down (sip{sip}.ucie.*), or the machine has fewer SIPs (system.sips.count)"
        )
    return (
        f"sip{sip}.{name} cannot be down, since nothing leads round it; cubes, PEs, UCIe ports and "
        "links between routers or ports can"
    )


def _keys_of(part: MachinePart, given: str) -> tuple[HardwareKey, ...]:
    if part.key:
        if given not in {LINK_KEY, part.key}:
            known = nearest(given, [LINK_KEY, DOWN])
            raise UnknownPartKeyError(f"unknown key of a link{known}")
        return (key_of_link(part.key),)
    return find_part_keys((kind for _, kind in part.nodes), given, part.section)


def _typed(key: HardwareKey, value: PartValue) -> PartValue:
    """The value as the key has it: a count is an integer."""
    is_whole = isinstance(value, float) and value.is_integer()
    return int(value) if key.kind == "integer" and is_whole else value
