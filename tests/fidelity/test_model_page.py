"""`docs/model.md` has a row for every key of the topology file, with the value that ships."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from runtime.core.config_file import default_file

PAGE = (Path(__file__).parents[2] / "docs" / "model.md").read_text()
ROWS = {line.split("`")[1]: line for line in PAGE.splitlines() if line.startswith("| `")}


def leaves(section: dict[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """(key path, value); a mapping of positions is one value."""
    for key, value in section.items():
        if isinstance(value, dict) and not key.endswith("pos_mm"):
            yield from leaves(value, f"{path}{key}.")
        else:
            yield path + key, value


LEAVES = dict(leaves(yaml.safe_load(default_file("topology.yaml").read_text())))

UNITS = {
    "ns": "ns",
    "gbs": "GB/s",
    "mm": "mm",
    "bytes": "B",
    "mb": "MiB",
    "gib": "GiB",
    "ghz": "GHz",
}


@pytest.mark.parametrize("key", LEAVES)
def test_a_key_has_a_row_with_the_value_that_ships(key: str) -> None:
    unit, default = [cell.strip() for cell in ROWS[key].split("|")[2:4]]
    value = LEAVES[key]
    if isinstance(value, int | float):
        assert default == f"{value:g}"
    assert unit == UNITS.get(key.rpartition("_")[2], unit) or "_per_" in key


def test_no_row_is_for_a_key_that_does_not_exist() -> None:
    tables = PAGE.partition("### `topology.yaml`")[2].partition("### `ccl.yaml`")[0]
    named = {line.split("`")[1] for line in tables.splitlines() if line.startswith("| `")}
    assert named - set(LEAVES) == {"impl.<kind>"}
