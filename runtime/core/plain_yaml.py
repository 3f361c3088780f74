"""YAML texts of plain values, whose keys need no check; `yaml_mapping` reads those that do.

By libyaml, which is ten times as fast as PyYAML itself, where PyYAML is built with it.
"""

from typing import Any

import yaml

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def from_yaml(text: str) -> Any:
    """The value in `text`."""
    return yaml.load(text, _Loader)  # noqa: S506 - a safe loader


def to_yaml(content: object, *, sort_keys: bool = True) -> str:
    """The text of a value of plain types."""
    text: str = yaml.dump(content, Dumper=_Dumper, sort_keys=sort_keys)
    return text
