"""Reads `topology.yaml` into a checked `Topology`."""

from pathlib import Path

from msgspec.structs import replace

from runtime.core.config_file import default_file, parse, raise_first, read_text
from runtime.model.schema import Topology

__all__ = ["Topology", "load_topology", "parse_topology"]


def load_topology(path: Path | None = None, sips: int | None = None) -> Topology:
    """The topology in `path`, by default the file that ships with kernbench.

    `sips` overrides `system.sips.count`. Raises `ConfigError`, one line that names file and key.
    """
    source = path or default_file("topology.yaml")
    return parse_topology(read_text(source), str(source), sips)


def parse_topology(text: str, source: str, sips: int | None = None) -> Topology:
    """The topology in YAML `text`; a `ConfigError` names the file `source`."""
    # Imported here: an LP receives checked values and needs no rules.
    from runtime.model.rules import problems

    topology = parse(text, source, Topology)
    if sips is not None:
        # Before the rules are checked: they must hold for the SIP count that is simulated.
        topology = _with_sips(topology, sips)
    raise_first(source, problems(topology))
    return topology


def _with_sips(topology: Topology, sips: int) -> Topology:
    system = topology.system
    return replace(topology, system=replace(system, sips=replace(system.sips, count=sips)))
