"""Variants of the topology file that ships with kernbench."""

from functools import cache
from typing import Any

import yaml

from runtime.core.config.config_file import default_file
from runtime.model.topology import Topology, parse_topology

SOURCE = "topology.yaml"


@cache
def default_text() -> str:
    return default_file("topology.yaml").read_text(encoding="utf-8")


def variant_text(**changes: Any) -> str:
    """The default file with other values or new keys: `variant_text(system__sips__count=3)`."""
    content = yaml.load(default_text(), yaml.CSafeLoader)
    for path, value in changes.items():
        *parents, key = path.split("__")
        section = content
        for parent in parents:
            section = section.setdefault(parent, {})
        section[key] = value
    return yaml.dump(content, Dumper=yaml.CSafeDumper)


def variant(**changes: Any) -> Topology:
    return parse_topology(variant_text(**changes), SOURCE)


def small(**changes: Any) -> Topology:
    """Four cubes in two columns, 2 x 2 PEs each."""
    return variant(
        **{"sip__cube_mesh": {"w": 2, "h": 2}, "cube__pe_layout__pe_per_corner": 1} | changes
    )
