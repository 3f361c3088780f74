"""Reads a YAML file into a strict, frozen model; an error is one line that names file and key.

Steps: read the text, load it as YAML with unique string keys, validate it with pydantic. A
violation in any step becomes a `ConfigError` with the key path and, for a misspelt name, the
nearest known one.
"""

import json
from collections.abc import Iterable, Mapping
from copy import deepcopy
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, get_args, get_origin

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from runtime.core.errors import ConfigError, nearest


class Section(BaseModel):
    """A mapping of a configuration file.

    It refuses unknown keys, values of another type and infinite numbers, and is immutable.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


_Model = TypeVar("_Model", bound=BaseModel)
_Location = tuple[int | str, ...]


def default_file(name: str) -> Path:
    """The file `name` that ships with kernbench.

    It lies in the installed package, or at the root of a source checkout.
    """
    package = Path(__file__).parents[1]
    packaged = package / "defaults" / name
    # The build copies the files from the root of the repository into the package.
    return packaged if packaged.exists() else package.parent / name


def read_text(path: Path) -> str:
    """The text of a configuration file; raises `ConfigError` when it cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise ConfigError(str(path), "", "no such file") from error
    except UnicodeDecodeError as error:
        raise ConfigError(str(path), "", f"byte {error.start} is not UTF-8 text") from error
    except OSError as error:
        raise ConfigError(str(path), "", f"cannot be read: {error.strerror}") from error


# Every simulation of a process reads its files again, and YAML is slow to read: a tenth of the time
# of a small run. The result is immutable, so equal texts can share it.
@lru_cache(maxsize=16)
def parse(text: str, source: str, model: type[_Model]) -> _Model:
    """Validate the YAML mapping in `text` as `model`; a `ConfigError` names the file `source`."""
    content = _yaml_mapping(text, source)
    try:
        return model.model_validate(content)
    except ValidationError as error:
        raise_first(source, _problems(error, model))
        raise  # not reached: pydantic reports at least one problem


def raise_first(source: str, problems: Iterable[tuple[str, str]]) -> None:
    """Raise `ConfigError` for the first `(key path, problem)`, with the number of the others."""
    found = list(problems)
    if found:
        key_path, problem = found[0]
        others = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        raise ConfigError(source, key_path, problem + others)


def value_at(content: Mapping[str, Any], key_path: str) -> Any:
    """The value at a key path such as `system.sips.count`; `KeyError` for a key that is missing."""
    found: Any = content
    for key in key_path.split("."):
        found = found[key]
    return found


def with_values(content: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of `content` with `values` at their key paths; missing sections are created."""
    changed = deepcopy(dict(content))
    for key_path, value in values.items():
        *parents, key = key_path.split(".")
        section = changed
        for parent in parents:
            section = section.setdefault(parent, {})
        section[key] = value
    return changed


def config_hash(*models: BaseModel) -> str:
    """SHA-256 over the canonical JSON of `models`, as hex.

    It covers values only: comments, the order of keys, and `1` written for `1.0` do not change it.
    """
    content = [model.model_dump(mode="json") for model in models]
    return sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


_KEY_TAGS = ("tag:yaml.org,2002:str", "tag:yaml.org,2002:merge")


class _UniqueKeyLoader(yaml.SafeLoader):
    """Loads YAML whose keys are strings, each at most once in its mapping.

    PyYAML keeps the last of two equal keys without a warning, which hides a mistake of the user.
    Sequences become tuples: a frozen model must not hold a list.
    """

    def unique_mapping(self, node: yaml.MappingNode) -> dict[str, Any]:
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
        content: dict[Any, Any] = self.construct_mapping(node, deep=True)
        return content

    def tuple_sequence(self, node: yaml.SequenceNode) -> tuple[Any, ...]:
        return tuple(self.construct_sequence(node, deep=True))


_UniqueKeyLoader.add_constructor("tag:yaml.org,2002:map", _UniqueKeyLoader.unique_mapping)
_UniqueKeyLoader.add_constructor("tag:yaml.org,2002:seq", _UniqueKeyLoader.tuple_sequence)


def _yaml_mapping(text: str, source: str) -> dict[str, Any]:
    try:
        content: Any = yaml.load(text, _UniqueKeyLoader)  # noqa: S506 - a subclass of SafeLoader
    except yaml.MarkedYAMLError as error:
        raise ConfigError(source, _line(error), error.problem or "not YAML") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ConfigError(source, "", f"not YAML: {str(error).splitlines()[0]}") from error
    if content is None:
        raise ConfigError(source, "", "the file is empty")
    if not isinstance(content, dict):
        raise ConfigError(source, "", f"the file holds {_shown(content)}, not a mapping of keys")
    return content  # pyright: ignore[reportUnknownVariableType] - its keys are what the model checks


def _line(error: yaml.MarkedYAMLError) -> str:
    return f"line {error.problem_mark.line + 1}" if error.problem_mark else ""


def _problems(error: ValidationError, model: type[BaseModel]) -> list[tuple[str, str]]:
    # A misspelt key is reported twice, as unknown and as missing; the user needs the former first.
    details = sorted(
        error.errors(include_url=False), key=lambda detail: detail["type"] != "extra_forbidden"
    )
    return [(_key_path(detail["loc"]), _problem(detail, model)) for detail in details]


def _key_path(location: _Location) -> str:
    path = ""
    for part in location:
        path += f"[{part}]" if isinstance(part, int) else f".{part}"
    return path.removeprefix(".")


def _problem(detail: ErrorDetails, model: type[BaseModel]) -> str:
    match detail["type"]:
        case "extra_forbidden":
            *section, key = detail["loc"]
            hint = nearest(str(key), _known_keys(model, tuple(section)))
            # Most likely a section of the file that was indented too far.
            if section and key in model.model_fields and "did you mean" not in hint:
                hint = f"; {key!r} is a key of the top level"
            return f"unknown key{hint}"
        case "missing":
            return "this key is missing"
        case "model_type" | "dict_type":
            return f"should be a mapping of keys, got {_shown(detail['input'])}"
        case "tuple_type":
            return f"should be a list, got {_shown(detail['input'])}"
        case "too_short":
            return "this list is empty"
        case _:
            return f"{detail['msg'].removeprefix('Input ')}, got {_shown(detail['input'])}"


def _known_keys(model: type[BaseModel], location: _Location) -> list[str]:
    section: Any = model
    for part in location:
        section = _member(section, part)
    return list(section.model_fields)


def _member(section: Any, part: int | str) -> Any:
    """The type of the next step of a key path: a field of a model, or an element of a container."""
    if isinstance(section, type) and issubclass(section, BaseModel):
        return _model(section.model_fields[str(part)].annotation)
    return _model(next(kind for kind in reversed(get_args(section)) if kind is not Ellipsis))


def _model(annotation: Any) -> Any:
    """An annotation without its constraints and without `| None`."""
    if isinstance(annotation, UnionType):
        return next(kind for kind in get_args(annotation) if kind is not NoneType)
    return _model(get_args(annotation)[0]) if get_origin(annotation) is Annotated else annotation


def _shown(value: object) -> str:
    match value:
        case dict():
            return "a mapping"
        case tuple():
            return f"a list of {len(value)}"  # pyright: ignore[reportUnknownArgumentType] - any elements
        case None:
            return "null"
        case _:
            return repr(value)
