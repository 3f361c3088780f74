"""Reads a YAML file into a checked `Section`; an error is one line that names file and key.

Steps: read the text, load it as YAML with unique string keys, compare it with the annotations of
the section. A violation in any step becomes a `ConfigError` with the key path and, for a misspelt
name, the nearest known one.
"""

import re
from collections.abc import Iterable, Mapping
from copy import deepcopy
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from runtime.core.config.section import Section
from runtime.core.errors import ConfigError

_Section = TypeVar("_Section", bound=Section)


def default_file(name: str) -> Path:
    """The file `name` that ships with kernbench.

    It lies in the installed package, or at the root of a source checkout.
    """
    package = Path(__file__).parents[2]
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


# Every simulation of a process reads its files again, and a text is slow to read. The result is
# immutable, so equal texts can share it.
@lru_cache(maxsize=16)
def parse(text: str, source: str, schema: type[_Section]) -> _Section:
    """The YAML mapping in `text` as a `schema`; a `ConfigError` names the file `source`."""
    from runtime.core.config.yaml_mapping import yaml_mapping

    return from_values(yaml_mapping(text, source), source, schema)


def from_values(content: Mapping[str, Any], source: str, schema: type[_Section]) -> _Section:
    """The section with these keys and values, with tuples for lists; raises `ConfigError`."""
    # Imported here: a process that receives checked values reads no file.
    from runtime.core.config.section_problems import problems

    raise_first(source, problems(content, schema))
    return msgspec.convert(content, schema)


def raise_first(source: str, problems: Iterable[tuple[str, str]]) -> None:
    """Raise `ConfigError` for the first `(key path, problem)`, with the number of the others."""
    differences = list(problems)
    if differences:
        key_path, problem = differences[0]
        others = f" (and {len(differences) - 1} more)" if len(differences) > 1 else ""
        raise ConfigError(source, key_path, problem + others)


def path_names(key_path: str) -> list[str]:
    """The names in a key path: `ucie.bw_gbs`, or `overrides[cube3.pe*].gemm.clock_ghz`.

    A name of the user with dots is in brackets, and the key behind it is one name.
    """
    match = re.fullmatch(r"([^\[]+)\[([^\]]+)\]\.?(.*)", key_path)
    if match is None:
        return key_path.split(".")
    sections, name, key = match.groups()
    return [*sections.split("."), name, *([key] if key else [])]


def value_at(content: Mapping[str, Any], key_path: str) -> Any:
    """The value at a key path such as `system.sips.count`; `KeyError` for a key that is missing."""
    value: Any = content
    for key in path_names(key_path):
        value = value[key]
    return value


def with_values(content: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of `content` with `values` at their key paths; missing sections are created."""
    changed = deepcopy(dict(content))
    for key_path, value in values.items():
        *parents, key = path_names(key_path)
        section = changed
        for parent in parents:
            section = section.setdefault(parent, {})
        section[key] = value
    return changed
