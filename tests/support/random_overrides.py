"""Machines whose parts differ: random `overrides` of components, links and containers."""

import re
from random import Random
from typing import Any

import yaml

from runtime.core.config.config_file import value_at
from runtime.core.errors import ConfigError
from runtime.model.graph import ChipGraph
from runtime.model.grid_of_sips import GridOfSips
from runtime.model.parts.part_keys import keys_of_kind
from runtime.model.topology import Topology, parse_topology

MOST = 6
ATTEMPTS = 100


def with_random_overrides(text: str, seed: int, sips: int) -> str:
    """The topology file with overrides of a few parts, which no rule refuses."""
    draw, plain = Random(f"overrides {seed}"), parse_topology(text, "plain", sips)
    names = _names(plain)
    for _ in range(ATTEMPTS):
        overrides: dict[str, dict[str, Any]] = {}
        for _ in range(draw.randint(1, MOST)):
            name, keys = draw.choice(names)
            overrides[_general(name, draw)] = _values(plain, keys, draw)
        changed = yaml.safe_dump(yaml.safe_load(text) | {"overrides": overrides})
        try:
            parse_topology(changed, "overrides", sips)
        except ConfigError:
            # Two patterns may set one key to two values.
            continue
        return changed
    raise AssertionError(f"no overrides after {ATTEMPTS} attempts: {overrides}")


def _names(topology: Topology) -> list[tuple[str, tuple[str, ...]]]:
    """The names of components and links of all SIPs, with the paths of their keys."""
    graph, grid = ChipGraph(topology), GridOfSips(topology)
    inside = [(node.name, tuple(keys_of_kind(node.kind))) for node in graph.nodes]
    links = zip(graph.link_names, graph.links, strict=True)
    inside += [(name, ("bw_gbs",)) for name, link in links if link.bw_gbs is not None]
    names = [(f"sip{sip}.{name}", keys) for sip in range(topology.sips) for name, keys in inside]
    for sip in range(topology.sips):
        ports = [(f"sip{sip}.{port}", tuple(keys_of_kind("sip_port"))) for port in grid.ports(sip)]
        # As often as other components.
        names += len(inside) // 8 * ports
    # PEs and slices are few among the routers.
    engines = [each for each in names if re.search(r"pe\d+(\.hbm_ctrl)?$", each[0])]
    return [*names, *(8 * engines)]


def _general(name: str, draw: Random) -> str:
    """The name, or a pattern of it."""
    if "->" in name:
        return name
    name = draw.choice((name, name.partition(".")[2]))
    return re.sub(r"\d+", "*", name, count=1) if draw.random() < 0.3 else name


def _values(topology: Topology, keys: tuple[str, ...], draw: Random) -> dict[str, Any]:
    content = topology.values()
    values: dict[str, Any] = {}
    for key in draw.sample(keys, min(len(keys), draw.randint(1, 3))):
        present = 128.0 if key == "bw_gbs" else value_at(content, key)
        factor = draw.choice((0.25, 0.5, 0.7, 1.3, 2, 4))
        if isinstance(present, int):
            values[key] = max(1, round(present * factor))
        else:
            values[key] = min(round((present or 20.0) * factor, 3), 1.0 if "eff" in key else 1e5)
    return values
