"""The numbers of parts that differ from the rest of the machine, `overrides` of the file.

A component has the keys of the file with its own values. A link has the bandwidth of its own, else
the least of those of its ends, else that of the file. Of several overrides of a key, that for the
smaller container counts, and of equal ones that with fewer `*`. The simulator has checked that all
names and keys exist, and that a short key is that of one key of its part.
"""

import re
from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import cached_property
from typing import Any, cast

from kernbench.oracle.theory.topology_file import TopologyFile
from runtime.core.simtime import exact

Component = tuple[int, str]
"""SIP, and the name in it."""
_LATENCIES = ("router_overhead_ns", "t_rcd_ns")
_ENGINES = frozenset(
    f"pe_{engine}"
    for engine in ("cpu", "scheduler", "mmu", "dma", "ipcq", "tcm", "fetch_store", "gemm", "math")
)


class PartNumbers:
    """The numbers of the parts of one topology file."""

    def __init__(self, file: TopologyFile) -> None:
        self._file = file
        self._overrides: Mapping[str, Mapping[str, Any]] = file.get("overrides", None) or {}
        self.is_uniform = not self._overrides
        self._files = dict[Component, TopologyFile]()
        self._known = dict[Component, dict[str, Any]]()

    def file_of(self, part: Component) -> TopologyFile:
        """The file with the values of a component."""
        if self.is_uniform:
            return self._file
        if part not in self._files:
            values = self._values(part)
            own = self._file.uniform.with_values(values) if values else self._file
            self._files[part] = own
        return self._files[part]

    def link_gbs(self, key: str, source: Component, target: Component) -> Fraction:
        """The bandwidth of the link from a component to another."""
        if self.is_uniform:
            return self._file.number(key)
        if source[0] == target[0]:
            own_gbs = self._of_link(source[0], f"{source[1]}->{target[1]}", key)
            if own_gbs is not None:
                return exact(own_gbs)
        own = [self._values(end).get(key) for end in (source, target)]
        ends = [exact(each) for each in own if each is not None]
        return min(ends, default=self._file.number(key))

    def named_link_gbs(self, key: str, sip: int, name: str) -> Fraction:
        """The bandwidth of the link `a->b` of a SIP, or of one of its ports to other SIPs."""
        source, _, target = name.partition("->")
        if source.startswith("ucie."):
            source = f"io.{source}"
        return self.link_gbs(key, (sip, source), (sip, target))

    def is_down(self, sip: int, name: str) -> bool:
        """Whether a component, a link or a cube of a SIP is down by its own name."""
        part = f"sip{sip}.{name}"
        return any(
            keys.get("down") is True and _matches(pattern, part)
            for pattern, keys in self._overrides.items()
        )

    @cached_property
    def has_down(self) -> bool:
        """Whether any part is down."""
        return any(keys.get("down") is True for keys in self._overrides.values())

    def _values(self, part: Component) -> dict[str, Any]:
        """The values of a component by the paths of their keys."""
        if part not in self._known:
            self._known[part] = self._values_of(part)
        return self._known[part]

    def _values_of(self, part: Component) -> dict[str, Any]:
        best = dict[str, tuple[int, int, Any]]()
        for name, keys in self._overrides.items():
            for container, rank in _containers(*part):
                if not _matches(name, container):
                    continue
                engine = name.rpartition(".")[2]
                section = f"{engine.replace('_', '.', 1)}." if engine in _ENGINES else ""
                for path in self._paths:
                    value = next((keys[each] for each in _ends(path) if each in keys), None)
                    if value is not None and path.startswith(section):
                        entry = rank, -_stars(name), value
                        best[path] = max(best.get(path, entry), entry, key=lambda it: it[:2])
        return {path: self._typed(path, value) for path, (_, _, value) in best.items()}

    def _of_link(self, sip: int, name: str, key: str) -> float | None:
        own = [
            (-_stars(pattern), keys[each])
            for pattern, keys in self._overrides.items()
            if "->" in pattern and _matches(pattern, f"sip{sip}.{name}")
            for each in ("bw_gbs", key)
            if each in keys
        ]
        return max(own)[1] if own else None

    def _typed(self, path: str, value: float) -> float:
        return int(value) if isinstance(self._file[path], int) and value == int(value) else value

    @cached_property
    def _paths(self) -> list[str]:
        return list(_leaves(self._file.uniform.content))


def without_latencies(overrides: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The overrides without latencies of memories and routers that have a lower bound only."""
    return {
        name: {key: value for key, value in keys.items() if not key.endswith(_LATENCIES)}
        for name, keys in overrides.items()
    }


def _containers(sip: int, name: str) -> Iterator[tuple[str, int]]:
    """The names of what contains a component, and of itself, with their ranks."""
    names = [f"sip{sip}", *name.split(".")]
    yield names[0], 1
    if names[1] == "io" or names[1].startswith("cube"):
        yield ".".join(names[:2]), 2
    if len(names) > 2 and re.fullmatch(r"pe\d+", names[2]):
        yield ".".join(names[:3]), 3
        if len(names) == 3:
            yield from ((f"{'.'.join(names)}.{engine}", 9) for engine in sorted(_ENGINES))
            return
    yield ".".join(names), 9


def _matches(pattern: str, name: str) -> bool:
    """Whether a name of a file is that of a part; one without a SIP is that of every SIP."""
    sip = pattern.partition(".")[0]
    if not re.fullmatch(r"sip[0-9*]+", sip):
        sip, pattern = "sip*", f"sip*.{pattern}"
    pattern = pattern.replace(f"->{sip}.", "->").replace(f"{sip}.ucie.", f"{sip}.io.ucie.")
    return bool(re.fullmatch(re.escape(pattern).replace(r"\*", "[^.>]+"), name))


def _stars(pattern: str) -> int:
    has_sip = re.fullmatch(r"sip[0-9*]+", pattern.partition(".")[0])
    return pattern.count("*") + (not has_sip)


def _ends(path: str) -> Iterator[str]:
    """A path and its ends, by which a key can be written."""
    names = path.split(".")
    return (".".join(names[first:]) for first in range(len(names)))


def _leaves(content: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    for key, value in content.items():
        if isinstance(value, dict):
            yield from _leaves(cast("dict[str, Any]", value), f"{prefix}{key}.")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield f"{prefix}{key}"
