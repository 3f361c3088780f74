"""Compares the content of a file with the annotations of a `Section` and names every difference.

The walk follows the annotations; each type of annotation has one rule. All differences are
reported, unknown keys first: a misspelt key is both unknown and missing, and the unknown key
explains the missing one.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import chain
from math import isfinite
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    TypeGuard,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec

from runtime.core.config.section import NewestVersion, Section
from runtime.core.config.yaml_mapping import shown
from runtime.core.errors import nearest

Problem = tuple[str, str]
"""Key path and problem."""
_Kinds = tuple[Any, ...]
"""The arguments of an annotation."""
_NEWER = "is newer than"


def problems(content: Mapping[str, Any], schema: type[Section]) -> list[Problem]:
    """Every difference between `content` and `schema`; an empty list for valid content.

    Of a file with a version that is too new, this is the only one: it explains the others.
    """
    differences = list(_of_section(content, schema, "", schema))
    newer = [each for each in differences if _NEWER in each[1]]
    return newer or sorted(differences, key=lambda each: not each[1].startswith("unknown key"))


def value_problems(value: Any, kind: Any, path: str, schema: type[Section]) -> list[Problem]:
    """Every difference between `value` and `kind`, the annotation of the key `path` of `schema`."""
    return list(_of(value, kind, path, schema))


def _of_section(
    content: Any, section: type[Section], path: str, top: type[Section]
) -> Iterator[Problem]:
    if not isinstance(content, dict):
        yield path, f"should be a mapping of keys, got {shown(content)}"
        return
    values = cast("dict[str, Any]", content)
    kinds, required = _fields(section)
    prefix = f"{path}." if path else ""
    for key, kind in kinds.items():
        if key in values:
            yield from _of(values[key], kind, prefix + key, top)
        elif key in required:
            yield prefix + key, "this key is missing"
    for key in values:
        if key not in kinds:
            hint = nearest(key, list(kinds))
            # Most likely a section of the file that was indented too far.
            if path and key in top.__struct_fields__ and "did you mean" not in hint:
                hint = f"; {key!r} is a key of the top level"
            yield prefix + key, f"unknown key{hint}"


@cache
def _fields(section: type[Section]) -> tuple[dict[str, Any], frozenset[str]]:
    """The annotation of each key, and the keys without a default."""
    required = frozenset(field.name for field in msgspec.structs.fields(section) if field.required)
    hints = get_type_hints(section, include_extras=True)
    return {key: hints[key] for key in section.__struct_fields__}, required


def _of(value: Any, kind: Any, path: str, top: type[Section]) -> Iterator[Problem]:
    if _is_section(kind):
        return _of_section(value, kind, path, top)
    rule = _RULES.get(get_origin(kind))
    if rule is not None:
        return rule(value, get_args(kind), path, top)
    return ((path, problem) for problem in _of_scalar(value, kind))


def _is_section(kind: Any) -> TypeGuard[type[Section]]:
    return isinstance(kind, type) and issubclass(kind, Section)


def _of_optional(value: Any, kinds: _Kinds, path: str, top: type[Section]) -> Iterator[Problem]:
    others = [kind for kind in kinds if kind is not NoneType]
    if value is None and len(others) < len(kinds):
        return
    problems = [list(_of(value, kind, path, top)) for kind in others]
    if all(problems):
        yield from problems[0]


def _of_ranged(value: Any, kinds: _Kinds, path: str, top: type[Section]) -> Iterator[Problem]:
    kind, *additions = kinds
    of_kind = list(_of(value, kind, path, top))
    # An annotation may hold more than ranges.
    metas = (each for each in additions if isinstance(each, msgspec.Meta))
    newest = (each.version for each in additions if isinstance(each, NewestVersion))
    yield from of_kind or chain(
        ((path, problem) for meta in metas for problem in _out_of_range(value, meta)),
        (
            (path, f"{value} {_NEWER} {version}, the newest version that this kernbench reads")
            for version in newest
            if value > version
        ),
    )


def _of_literal(value: Any, kinds: _Kinds, path: str, _: type[Section]) -> Iterator[Problem]:
    if not isinstance(value, str) or value not in kinds:
        yield path, f"should be {_alternatives(kinds)}, got {shown(value)}"


def _of_mapping(value: Any, kinds: _Kinds, path: str, top: type[Section]) -> Iterator[Problem]:
    if not isinstance(value, dict):
        yield path, f"should be a mapping of keys, got {shown(value)}"
        return
    elements = cast("dict[str, Any]", value)
    for key, element in elements.items():
        yield from _of(element, kinds[1], f"{path}.{key}", top)


def _of_list(value: Any, kinds: _Kinds, path: str, top: type[Section]) -> Iterator[Problem]:
    if not isinstance(value, tuple):
        yield path, f"should be a list, got {shown(value)}"
        return
    elements = cast("tuple[Any, ...]", value)
    if kinds[-1] is Ellipsis:
        kinds = (kinds[0],) * len(elements)
    for index, (element, kind) in enumerate(zip(elements, kinds, strict=False)):
        yield from _of(element, kind, f"{path}[{index}]", top)
    for index in range(len(elements), len(kinds)):
        yield f"{path}[{index}]", "this key is missing"
    if len(elements) > len(kinds):
        yield path, f"should have at most {len(kinds)} items, got {len(elements)}"


_RULES: Mapping[Any, Callable[[Any, _Kinds, str, type[Section]], Iterator[Problem]]] = {
    Union: _of_optional,
    UnionType: _of_optional,
    Annotated: _of_ranged,
    Literal: _of_literal,
    Mapping: _of_mapping,
    dict: _of_mapping,
    tuple: _of_list,
}


def _of_scalar(value: Any, kind: type) -> Iterator[str]:
    # True is an int in Python, but not in a file.
    if kind is int and (isinstance(value, bool) or not isinstance(value, int)):
        yield f"should be a valid integer, got {shown(value)}"
    elif kind is int and not -(1 << 63) <= value < 1 << 63:
        # Values travel as MessagePack, which has no longer integers.
        yield f"should be an integer of at most 64 bits, got {shown(value)}"
    elif kind is float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            yield f"should be a valid number, got {shown(value)}"
        elif not _is_finite(value):
            yield f"should be a finite number, got {shown(value)}"
    elif kind is bool and not isinstance(value, bool):
        yield f"should be true or false, got {shown(value)}"
    elif kind is str and not isinstance(value, str):
        yield f"should be a valid string, got {shown(value)}"


def _is_finite(value: float) -> bool:
    try:
        return isfinite(value)
    except OverflowError:
        # An integer beyond the range of floats.
        return False


def _out_of_range(value: Any, meta: msgspec.Meta) -> Iterator[str]:
    if meta.min_length is not None and len(value) < meta.min_length:
        yield "this list is empty" if not isinstance(value, str) else "this name is empty"
    elif meta.pattern is not None and not re.search(meta.pattern, value):
        yield f"should match the pattern {meta.pattern!r}, got {shown(value)}"
    elif meta.ge is not None and value < meta.ge:
        yield f"should be greater than or equal to {meta.ge:g}, got {shown(value)}"
    elif meta.le is not None and value > meta.le:
        yield f"should be less than or equal to {meta.le:g}, got {shown(value)}"
    elif meta.multiple_of is not None and value % meta.multiple_of:
        yield f"should be a multiple of {meta.multiple_of:g}, got {shown(value)}"


def _alternatives(values: tuple[Any, ...]) -> str:
    *others, last = map(repr, values)
    return f"{', '.join(others)} or {last}" if others else last
