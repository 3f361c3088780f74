"""Loads a YAML text whose top level is a mapping, with string keys that are unique.

Imported on demand: a process that receives checked values needs no YAML.
"""

from typing import Any

import yaml

from runtime.core.errors import ConfigError

_KEY_TAGS = ("tag:yaml.org,2002:str", "tag:yaml.org,2002:merge")


def yaml_mapping(text: str, source: str) -> dict[str, Any]:
    """The mapping in `text`, with tuples for sequences; a `ConfigError` names the file `source`."""
    try:
        content = _load(text)
    except yaml.MarkedYAMLError as error:
        raise ConfigError(source, _line(error), error.problem or "not YAML") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ConfigError(source, "", f"not YAML: {str(error).splitlines()[0]}") from error
    if content is None:
        raise ConfigError(source, "", "the file is empty")
    if not isinstance(content, dict):
        raise ConfigError(source, "", f"the file holds {shown(content)}, not a mapping of keys")
    return content  # pyright: ignore[reportUnknownVariableType] - its keys are what the schema checks


def shown(value: object) -> str:
    """A value of a file in an error message."""
    match value:
        case dict():
            return "a mapping"
        case tuple():
            return f"a list of {len(value)}"  # pyright: ignore[reportUnknownArgumentType] - any elements
        case None:
            return "null"
        case _:
            return repr(value)


def _unique_mapping(loader: Any, node: yaml.MappingNode) -> dict[str, Any]:
    # PyYAML keeps the last of two equal keys without a warning, which hides a mistake of the user.
    seen: set[str] = set()
    for key_node, _ in node.value:
        key: str = key_node.value
        if key_node.tag not in _KEY_TAGS:
            raise yaml.constructor.ConstructorError(
                None, None, f"keys are strings, got {key}", key_node.start_mark
            )
        if key in seen:
            raise yaml.constructor.ConstructorError(
                None, None, f"duplicate key {key!r}", key_node.start_mark
            )
        seen.add(key)
    content: dict[Any, Any] = loader.construct_mapping(node, deep=True)
    return content


def _tuple_sequence(loader: Any, node: yaml.SequenceNode) -> tuple[Any, ...]:
    # Checked values are immutable throughout, so they hold no list.
    return tuple(loader.construct_sequence(node, deep=True))


class _UniqueKeyLoader(yaml.SafeLoader):
    """The loader written in Python, whose messages are better."""


# PyYAML may be built without libyaml, which is ten times as fast.
_FastBase: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _FastLoader(_FastBase):
    """The loader of libyaml, where it is installed."""


for _loader in (_UniqueKeyLoader, _FastLoader):
    _loader.add_constructor("tag:yaml.org,2002:map", _unique_mapping)
    _loader.add_constructor("tag:yaml.org,2002:seq", _tuple_sequence)


def _load(text: str) -> object:
    try:
        return yaml.load(text, _FastLoader)  # noqa: S506 - a subclass of SafeLoader
    except (yaml.YAMLError, ValueError, RecursionError):
        # Once more, for the message.
        return yaml.load(text, _UniqueKeyLoader)  # noqa: S506 - a subclass of SafeLoader


def _line(error: yaml.MarkedYAMLError) -> str:
    return f"line {error.problem_mark.line + 1}" if error.problem_mark else ""
