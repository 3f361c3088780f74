"""The numbers of parts that differ from the rest of the machine, `overrides` of the file.

A component has the keys of the file with its own values. A link has the bandwidth of its own, else
the least of those of its ends, else that of the file.
"""

from fractions import Fraction
from functools import cached_property
from typing import Any

from kernbench.oracle.theory.topology_file import TopologyFile
from runtime.core.simtime import exact
from runtime.model.overrides import SipParts, parts_of
from runtime.model.topology import Topology, parse_topology

_LATENCIES = ("router_overhead_ns", "t_rcd_ns")


class PartNumbers:
    """The numbers of the parts of one topology file; components are named in their SIP."""

    def __init__(self, file: TopologyFile) -> None:
        self._file = file
        self.is_uniform = not file.get("overrides", None)
        self._files = dict[frozenset[tuple[str, Any]], TopologyFile]()

    def file_of(self, sip: int, name: str) -> TopologyFile:
        """The file with the values of a component."""
        values = {} if self.is_uniform else self._of(sip).values.get(name, {})
        if not values:
            return self._file
        key = frozenset(values.items())
        if key not in self._files:
            self._files[key] = self._file.uniform.with_values(values)
        return self._files[key]

    def link_gbs(self, key: str, source: tuple[int, str], target: tuple[int, str]) -> Fraction:
        """The bandwidth of the link from a component to another, each (SIP, name)."""
        if self.is_uniform:
            return self._file.number(key)
        own_gbs = self._of(source[0]).links.get(f"{source[1]}->{target[1]}")
        if own_gbs is not None and source[0] == target[0]:
            return exact(own_gbs)
        ends = [self._of(sip).values.get(name, {}).get(key) for sip, name in (source, target)]
        own = [exact(each) for each in ends if each is not None]
        return min(own, default=self._file.number(key))

    def _of(self, sip: int) -> SipParts:
        return parts_of(self._topology, sip)

    @cached_property
    def _topology(self) -> Topology:
        return parse_topology(self._file.text, "topology")


def without_latencies(overrides: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The overrides without latencies of memories and routers that have a lower bound only."""
    return {
        name: {key: value for key, value in keys.items() if not key.endswith(_LATENCIES)}
        for name, keys in overrides.items()
    }
