"""Reads `topology.yaml` into a checked `Topology`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from runtime.core.config.config_file import (
    default_file,
    from_values,
    parse,
    raise_first,
    read_text,
    value_at,
)
from runtime.model.keys import hardware_keys
from runtime.model.schema.topology_schema import Topology

__all__ = ["Topology", "load_topology", "parse_topology", "shipped_values", "topology_of_values"]


def load_topology(path: Path | None = None, sips: int | None = None) -> Topology:
    """The topology in `path`, by default the file that ships with kernbench.

    `sips` overrides `system.sips.count`. Raises `ConfigError`, one line that names file and key.
    """
    source = path or default_file("topology.yaml")
    return parse_topology(read_text(source), str(source), sips)


def parse_topology(text: str, source: str, sips: int | None = None) -> Topology:
    """The topology in YAML `text`; a `ConfigError` names the file `source`."""
    return _checked(parse(text, source, Topology), source, sips)


def topology_of_values(
    content: Mapping[str, Any], source: str, sips: int | None = None
) -> Topology:
    """The topology with these keys and values; a `ConfigError` names their origin, `source`."""
    return _checked(from_values(content, source, Topology), source, sips)


def shipped_values() -> dict[str, Any]:
    """The value of every key in the file that ships with kernbench, by its path."""
    content = load_topology().values()
    return {key.path: value_at(content, key.path) for key in hardware_keys()}


def _checked(topology: Topology, source: str, sips: int | None) -> Topology:
    # Imported here: an LP receives checked values and needs no rules.
    from runtime.model.rules import problems

    if sips is not None:
        # Before the rules are checked: they must hold for the SIP count that is simulated.
        topology = _with_sips(topology, sips)
    raise_first(source, problems(topology))
    return topology


def _with_sips(topology: Topology, sips: int) -> Topology:
    system = topology.system
    return replace(topology, system=replace(system, sips=replace(system.sips, count=sips)))
