"""The place of a decoding error in words: `$[2][3][0]` of a positional array becomes
`messages[0].time_ps`.

Structs cross as arrays without field names, so msgspec reports positions. This module walks the
types along a path.
"""

import re
import types
from collections.abc import Sequence
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from msgspec import Struct
from msgspec.structs import fields

_PATH = re.compile(r"^(?P<problem>.*) - at `\$(?P<path>(?:\[[^\]]*\])+)`$", re.DOTALL)
_STEP = re.compile(r"\[([^\]]*)\]")


def named(error: str, kind: object, value: object) -> str:
    """The text of a decoding error, its position given by field names: `value` did not decode as
    `kind`.

    `value` is the untyped content: its tags decide which member of a union a position belongs to.
    """
    match = _PATH.match(error)
    if match is None:
        return error
    name = ""
    for step in _STEP.findall(match["path"]):
        label, kind, value = _step(kind, value, step)
        name += label
    return f"field {name.lstrip('.')}: {match['problem']}" if name else match["problem"]


def _step(kind: object, value: object, step: str) -> tuple[str, object, object]:
    """(label, type, value) one step further; a step which is not an index (a key of a mapping) has
    no type.
    """
    index = int(step) if step.isdigit() else None
    inner = value[index] if _has(value, index) else None  # type: ignore[index]
    kind = _chosen(kind, value)
    if isinstance(kind, type) and issubclass(kind, Struct) and index is not None:
        tagged = kind.__struct_config__.tag is not None
        position = index - tagged
        known = fields(kind)
        if 0 <= position < len(known):
            hints = get_type_hints(kind, include_extras=True)
            return f".{known[position].name}", hints[known[position].name], inner
        return ".tag" if position < 0 else f"[{step}]", None, inner
    if index == 0 and kind is None:
        return ".tag", None, inner
    arguments = get_args(kind)
    if get_origin(kind) is tuple and index is not None and arguments:
        member = (
            arguments[0] if arguments[-1] is Ellipsis else arguments[min(index, len(arguments) - 1)]
        )
        return f"[{step}]", member, inner
    return f"[{step}]", None, inner


def _has(value: object, index: int | None) -> bool:
    return isinstance(value, Sequence) and index is not None and index < len(value)


def _chosen(kind: object, value: object) -> object:
    """The member of a union that `value` is of: by its tag, else the only struct or tuple."""
    if get_origin(kind) is Annotated:
        return get_args(kind)[0]
    if get_origin(kind) not in (Union, types.UnionType):
        return kind
    members: list[Any] = [each for each in get_args(kind) if each is not types.NoneType]
    tag = value[0] if isinstance(value, Sequence) and value else None
    for member in members:
        if isinstance(member, type) and member.__name__ == tag:
            return member
    return members[0] if len(members) == 1 else None
