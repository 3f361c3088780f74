"""`kernbench keys`: the keys of `topology.yaml`, as the schema declares them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click
import msgspec

from coordinator.report.text_table import TextStyle, TextTable, text_columns
from kernbench.command.options import CONTEXT_SETTINGS
from runtime.core.errors import UsageError
from runtime.core.output import print_lines
from runtime.model.keys import HardwareKey, hardware_keys, value_text
from runtime.model.schema.meanings import KeyGroup
from runtime.model.topology import shipped_values

_COLUMNS = text_columns("<key", "<unit", "<value", "<allowed", "<what it acts on")


@click.command(name="keys", context_settings=dict(CONTEXT_SETTINGS))
@click.argument("name", required=False, metavar="[NAME]")
@click.option("--json", "as_json", is_flag=True, help="For programs: a JSON list of the keys.")
def keys_command(name: str | None, *, as_json: bool) -> int:
    """List the keys of topology.yaml: unit, value in the file of kernbench, what it acts on.

    With NAME, every detail of the keys that have it: a key in full, a section such as pe.dma, or a
    part of a name.
    """
    keys, values = hardware_keys() if name is None else matching(name), shipped_values()
    if as_json:
        rows = [_row(key, values[key.path]) for key in keys]
        print_lines([msgspec.json.encode(rows).decode()])
    elif name is None:
        print_lines(_table(keys, values))
    else:
        print_lines(line for key in keys for line in _details(key, values[key.path]))
    return 0


def matching(name: str) -> Sequence[HardwareKey]:
    """The key `name`, else the keys of the section `name`, else those with `name` in their path.

    Raises `UsageError` with the nearest key where there is none.
    """
    keys = hardware_keys()
    matches = [key for key in keys if key.path == name]
    matches = matches or [key for key in keys if key.path.startswith(f"{name}.")]
    matches = matches or [key for key in keys if name in key.path]
    if not (name and matches):
        # Loaded where a name is wrong, as the keys of a sweep are those of both files.
        from kernbench.sweep.keys import similar_key

        hint = similar_key(name, [key.path for key in keys])
        raise UsageError(f"keys: no key of topology.yaml has {name!r} in its path{hint}")
    return matches


def _table(keys: Sequence[HardwareKey], values: Mapping[str, Any]) -> Iterator[str]:
    table = TextTable(_COLUMNS, TextStyle(ruled=True))
    for key in keys:
        # What a choice acts on names its alternatives.
        allowed = key.kind if key.kind == "choice" else key.bounds
        table.row(key.path, key.unit, value_text(values[key.path]), allowed, key.acts_on)
    return table.lines()


def _details(key: HardwareKey, value: Any) -> Iterator[str]:
    allowed = f"{key.kind}, {key.bounds}" if key.bounds else key.kind
    uses = "; ".join(group.value for group in KeyGroup if group in key.groups)
    omitted = "an error" if key.is_required else value_text(key.default)
    details = {
        "acts on": key.acts_on,
        "unit": key.unit,
        "value": value_text(value),
        "allowed": allowed,
        "omitted": omitted,
        "random machines": str(key.draw),
        "commands": uses,
        "since": f"version {key.since} of the schema",
    }
    yield key.path
    yield from (f"  {label:<17}{text}" for label, text in details.items() if text)
    yield ""


def _row(key: HardwareKey, value: Any) -> dict[str, Any]:
    """The key for JSON: null for a unit and bounds which it has not, no default if required."""
    row = {
        "key": key.path,
        "kind": key.kind,
        "unit": key.unit or None,
        "value": value,
        "allowed": key.bounds or None,
        "acts_on": key.acts_on,
        "since": key.since,
    }
    return row if key.is_required else row | {"default": key.default}
