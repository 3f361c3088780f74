"""YAML texts of plain values, whose keys need no check; `yaml_mapping` reads those that do.

By libyaml, which is ten times as fast as PyYAML itself, where PyYAML is built with it.
"""

from typing import Any

# PyYAML is imported where it is used: theory imports this module, benches import theory, and a rank
# that runs one reads no YAML.


def from_yaml(text: str) -> Any:
    """The value in `text`."""
    import yaml

    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load(text, loader)  # noqa: S506 - a safe loader


def to_yaml(content: object, *, sort_keys: bool = True) -> str:
    """The text of a value of plain types."""
    import yaml

    dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    text: str = yaml.dump(content, Dumper=dumper, sort_keys=sort_keys)
    return text
