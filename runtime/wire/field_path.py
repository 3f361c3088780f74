"""Names the field of a decoding error: `$[2][3][0]` of an array becomes `messages[3].time_ps`.

Structs cross as arrays without field names, so msgspec reports positions. A path is resolved by a
walk along the types: a struct names its fields, a tuple keeps the index, and a union is decided by
the tag in the content.
"""

import re
import types
from typing import Annotated, Any, Union, cast, get_args, get_origin, get_type_hints

from msgspec import Struct

_POSITION = re.compile(r"^(?P<problem>.*) - at `\$(?P<path>(?:\[[^\]]*\])+)`$", re.DOTALL)
_STEP = re.compile(r"\[([^\]]*)\]")


def named(error: str, kind: Any, content: Any) -> str:
    """The text of a decoding error with field names in place of positions.

    `content` did not decode as `kind`; it is given as untyped lists and scalars.
    """
    match = _POSITION.match(error)
    if match is None:
        return error
    name = ""
    for step in _STEP.findall(match["path"]):
        # A step that is no index is the key of a mapping, whose values have no field names.
        index = int(step) if step.isdigit() else -1
        label, kind = _field(_chosen(kind, content), index)
        name += label or f"[{step}]"
        content = _items(content)[index] if 0 <= index < len(_items(content)) else None
    return f"field {name.lstrip('.')}: {match['problem']}"


def _field(kind: Any, index: int) -> tuple[str, Any]:
    """The label and the type of the element at `index` of a value of type `kind`."""
    if isinstance(kind, type) and issubclass(kind, Struct):
        names = kind.__struct_fields__
        position = index - (kind.__struct_config__.tag is not None)
        if position < 0:
            return ".tag", None
        if position < len(names):
            return f".{names[position]}", get_type_hints(kind, include_extras=True)[names[position]]
    arguments = get_args(kind)
    if get_origin(kind) is tuple and arguments:
        last = len(arguments) - 1
        return "", arguments[0 if arguments[-1] is Ellipsis else min(index, last)]
    # The only union that stays open is that of messages whose tag is wrong itself.
    return (".tag" if index == 0 and kind is None else ""), None


def _chosen(kind: Any, content: Any) -> Any:
    """The type that applies: the member of a union by the tag of the content, or its only one."""
    if get_origin(kind) is Annotated:
        return get_args(kind)[0]
    if get_origin(kind) not in (Union, types.UnionType):
        return kind
    members = [member for member in get_args(kind) if member is not types.NoneType]
    tag = _items(content)[0] if _items(content) else None
    tagged = [member for member in members if getattr(member, "__name__", "") == tag]
    return tagged[0] if tagged else members[0] if len(members) == 1 else None


def _items(content: Any) -> list[Any]:
    return cast("list[Any]", content) if isinstance(content, list) else []
