"""The user's topology file with some values replaced: what a check measures is a variant of what the user gave."""

from typing import Any

import yaml

from runtime.core.config_file import value_at, with_values


class Variant:
    """The content of a topology file. Nothing in it is validated; the product does that when it reads `text`."""

    def __init__(self, content: dict[str, Any]) -> None:
        self.content = content

    @classmethod
    def of(cls, text: str) -> "Variant":
        """The file itself."""
        return cls(yaml.safe_load(text))

    def __getitem__(self, path: str) -> Any:
        return value_at(self.content, path)

    def with_values(self, values: dict[str, Any]) -> "Variant":
        """The same with other values, by key path."""
        return Variant(with_values(self.content, values))

    def on_a_ring(self, sips: int) -> "Variant":
        """The same with so many SIPs on a ring."""
        ring = {"count": sips, "topology": "ring_1d", "w": None, "h": None}
        return self.with_values({"system.sips": self["system.sips"] | ring})

    @property
    def text(self) -> str:
        """As YAML."""
        return yaml.safe_dump(self.content, sort_keys=False)

    @property
    def cubes(self) -> int:
        """Cubes of a SIP."""
        return self["sip.cube_mesh.w"] * self["sip.cube_mesh.h"]

    @property
    def pes_per_cube(self) -> int:
        """PEs of a cube."""
        return len(self["cube.pe_layout.corners"]) * self["cube.pe_layout.pe_per_corner"]

    @property
    def slice_gbs(self) -> float:
        """What one HBM slice delivers: pseudo channels x bandwidth x efficiency."""
        return self["hbm.num_pcs"] * self["hbm.pc_bw_gbs"] * self["cube.hbm_ctrl.efficiency"]
