"""The keys that `overrides` may set for a part of the machine: those of its kind in the schema.

A part has the times, bandwidths, clocks and cycles of its kind. Sizes, positions and models are
those of all parts: addresses, tensors and the commands of kernels depend on them.
"""

from collections.abc import Iterable, Mapping
from functools import cache

from runtime.core.errors import nearest
from runtime.model.keys import HardwareKey, hardware_keys
from runtime.model.schema.topology_schema import PartKind

CLOCK = "clock_ghz"
"""Stands for all clocks of a part: a PE has one for each of its two engines."""
LINK_KEY = "bw_gbs"
_UNITS = frozenset({"ns", "GB/s", "GHz", "cycles", "MACs/cycle"})
_RATES = frozenset({"cube.hbm_ctrl.efficiency"})
"""Keys without a unit that are the rate of a part."""
_SECTIONS: Mapping[PartKind, tuple[str, ...]] = {
    "host": ("host", "jitter.start_skew_ns", "jitter.command_ns"),
    "pcie_ep": ("sip.io_chiplet.pcie_ep",),
    "io_cpu": ("sip.io_chiplet.io_cpu",),
    "io_noc": ("sip.io_chiplet.noc",),
    "ucie": ("ucie",),
    "sip_port": ("ucie", "jitter.crossing_ns"),
    "m_cpu": ("cube.m_cpu",),
    "router": ("cube.noc",),
    "xbar": ("xbar",),
    "hbm_ctrl": ("cube.hbm_ctrl", "hbm"),
    "sram": ("cube.sram", "cube.sram_to_router_bw_gbs"),
    "pe": ("pe",),
}
"""The sections, and keys outside of them, of a component of each kind."""


@cache
def keys_of_kind(kind: PartKind) -> Mapping[str, HardwareKey]:
    """The keys of a component of a kind, by their paths."""
    return {
        key.path: key
        for key in _keys_of_sections([kind])
        if key.unit in _UNITS or key.path in _RATES
    }


class UnknownPartKeyError(Exception):
    """A key that no or several keys of a part end with; the text states the problem."""


def find_part_keys(
    kinds: Iterable[PartKind], given: str, section: str = ""
) -> tuple[HardwareKey, ...]:
    """The keys of parts of some kinds, in a section, that are `given` in full or by their end.

    One key, or all clocks. Raises `UnknownPartKeyError` for an end of no key, with the nearest,
    and for one of several.
    """
    kinds = sorted(set(kinds))
    of_kinds = {path: key for kind in kinds for path, key in keys_of_kind(kind).items()}
    keys = {path: key for path, key in of_kinds.items() if path.startswith(section)}
    if given in keys:
        return (keys[given],)
    ends = [key for path, key in keys.items() if path.endswith(f".{given}")]
    if len(ends) == 1 or (ends and given == CLOCK):
        return tuple(ends)
    if ends:
        shown = ", ".join(key.path for key in ends[:4])
        more = f" and {len(ends) - 4} more" if len(ends) > 4 else ""
        raise UnknownPartKeyError(f"the end of {len(ends)} keys: {shown}{more}")
    common = [key.path for key in _keys_of_sections(kinds) if f".{key.path}".endswith(f".{given}")]
    if common:
        raise UnknownPartKeyError(f"{common[0]} is that of all parts of the machine")
    # An engine of a PE cannot be down by itself.
    known = _short_names(keys) | set(() if section else ("down",))
    raise UnknownPartKeyError(f"unknown key{nearest(given, known)}")


def key_of_link(path: str) -> HardwareKey:
    """The key of the bandwidth of a link."""
    return next(key for key in hardware_keys() if key.path == path)


def _keys_of_sections(kinds: Iterable[PartKind]) -> list[HardwareKey]:
    """The keys in the sections of kinds of components, also those of no part."""
    sections = [section for kind in kinds for section in _SECTIONS[kind]]
    return [
        key
        for key in hardware_keys()
        if any(f"{key.path}.".startswith(f"{section}.") for section in sections)
    ]


def _short_names(keys: Mapping[str, HardwareKey]) -> set[str]:
    """The names by which the keys of a part can be written: the ends that only one has."""
    names = set[str]()
    for path in keys:
        parts = path.split(".")
        for count in range(1, len(parts) + 1):
            end = ".".join(parts[-count:])
            if end == CLOCK or sum(f".{other}".endswith(f".{end}") for other in keys) == 1:
                names.add(end)
                break
    return names
