"""The content of a topology file: exact numbers by key path, and copies with other values.

The content is plain YAML and is not validated: the simulator does that when it reads `text`. A key
path names nested keys, for example `hbm.pc_bw_gbs`.
"""

from fractions import Fraction
from functools import cached_property
from typing import Any

from runtime.core.config.config_file import value_at, with_values
from runtime.core.config.plain_yaml import from_yaml, to_yaml
from runtime.core.simtime import PS_PER_NS, exact


class TopologyFile:
    """A topology file, parsed but not validated."""

    def __init__(self, content: dict[str, Any]) -> None:
        self.content = content

    @classmethod
    def of(cls, text: str) -> "TopologyFile":
        """The file whose text is `text`."""
        return cls(from_yaml(text))

    def __getitem__(self, key_path: str) -> Any:
        return value_at(self.content, key_path)

    def get(self, key_path: str, default: Any) -> Any:
        """The value of a key that a file may leave out."""
        try:
            return self[key_path]
        except KeyError:
            return default

    def number(self, key_path: str) -> Fraction:
        """The exact value at a key path. A literal number, such as `"2.5"`, stands for itself."""
        return Fraction(key_path) if key_path[0].isdigit() else exact(self[key_path])

    def ps(self, key_path: str, default_ns: int | None = None) -> int:
        """A time given in nanoseconds, rounded to the nearest picosecond as the simulator does.

        A key that a file may leave out has a default.
        """
        if default_ns is not None and self.get(key_path, None) is None:
            return default_ns * PS_PER_NS
        return round(self.number(key_path) * PS_PER_NS)

    def with_values(self, values: dict[str, Any]) -> "TopologyFile":
        """A copy with other values at some key paths; missing sections are created."""
        return TopologyFile(with_values(self.content, values))

    def on_a_ring(self, sips: int) -> "TopologyFile":
        """A copy with `sips` SIPs on a ring."""
        ring = {"count": sips, "topology": "ring_1d", "w": None, "h": None}
        return self.with_values({"system.sips": self["system.sips"] | ring})

    def on_a_grid(self, topology: str, columns: int, rows: int) -> "TopologyFile":
        """A copy with a grid of SIPs, such as `torus_2d`, each linked to its neighbours."""
        sides = {"count": columns * rows, "w": columns, "h": rows}
        grid = sides | {"topology": topology, "fabric": "direct"}
        return self.with_values({"system.sips": self["system.sips"] | grid})

    @property
    def uniform(self) -> "TopologyFile":
        """The file without overrides."""
        others = {key: value for key, value in self.content.items() if key != "overrides"}
        return TopologyFile(others) if "overrides" in self.content else self

    @cached_property
    def text(self) -> str:
        """The content as YAML."""
        return to_yaml(self.content, sort_keys=False)

    @property
    def cubes(self) -> int:
        """Number of cubes of a SIP."""
        return self["sip.cube_mesh.w"] * self["sip.cube_mesh.h"]

    @property
    def pes_per_cube(self) -> int:
        """Number of PEs of a cube."""
        return len(self["cube.pe_layout.corners"]) * self["cube.pe_layout.pe_per_corner"]
