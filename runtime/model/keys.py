"""The keys of `topology.yaml` as the schema declares them: one record for each key with a value.

The random machines of the tests and of `validate`, the what-if of `why`, `kernbench keys`, the
table of docs/keys.md and the comments of `topology.yaml` read these records.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin, get_type_hints

import msgspec

from runtime.core.config.section import Section
from runtime.model.schema.draws import Among, Draw
from runtime.model.schema.meanings import ActsOn, KeyGroup
from runtime.model.schema.topology_schema import Topology

_UNITS = {
    "ns": "ns",
    "gbs": "GB/s",
    "ghz": "GHz",
    "mm": "mm",
    "bytes": "B",
    "mb": "MiB",
    "gib": "GiB",
    "cycles": "cycles",
    "flits": "flits",
    "macs": "MACs",
}
"""The unit of each end of a name."""
_KINDS = {int: "integer", float: "number", str: "name"}


@dataclass(frozen=True, kw_only=True)
class HardwareKey:
    """The declaration of a key: `path` is that in the file, such as `pe.dma.channels`.

    `unit` is empty for a count, a choice or a share, `bounds` for a value which only rules bound.
    `default` is that of a file without the key, `msgspec.NODEFAULT` where every file has the key.
    """

    path: str
    kind: str
    unit: str
    bounds: str
    default: Any
    acts_on: str
    since: int
    draw: Draw | None
    groups: frozenset[KeyGroup]

    @property
    def is_required(self) -> bool:
        """Whether the section of the key is invalid without it."""
        return self.default is msgspec.NODEFAULT


@cache
def hardware_keys(schema: type[Section] = Topology) -> tuple[HardwareKey, ...]:
    """The keys of a schema in the order of its fields, those of nested sections in place."""
    return tuple(_of_section(schema, "", ()))


def keys_of_group(group: KeyGroup) -> list[HardwareKey]:
    """The keys of `topology.yaml` in a group."""
    return [key for key in hardware_keys() if group in key.groups]


def value_text(value: Any) -> str:
    """A value as tables show it: `0.5`, `null`, `ring_1d`, `(5, 9)`."""
    if value is None:
        return "null"
    if isinstance(value, int | float):
        return f"{value:.10g}"
    if isinstance(value, list | tuple):
        elements = cast("list[Any]", value)
        inner = ", ".join(map(value_text, elements))
        return f"({inner})" if all(isinstance(each, int | float) for each in elements) else inner
    return str(value)


def _of_section(
    schema: type[Section], prefix: str, inherited: tuple[Any, ...]
) -> Iterator[HardwareKey]:
    annotations = get_type_hints(schema, include_extras=True)
    defaults = {field.name: field.default for field in msgspec.structs.fields(schema)}
    for name, annotation in annotations.items():
        kind, marks = _parts(annotation)
        path, marks = prefix + name, (*inherited, *marks)
        if isinstance(kind, type) and issubclass(kind, Section):
            yield from _of_section(kind, f"{path}.", marks)
        # A mapping has names of the user, and no key of its own.
        elif get_origin(kind) is not dict:
            yield _key(path, kind, marks, defaults[name])


def _parts(annotation: Any) -> tuple[Any, tuple[Any, ...]]:
    """The bare type of an annotation, and all that stands beside it; `NoneType` where null may."""
    origin = get_origin(annotation)
    if origin is Annotated:
        kind, marks = _parts(get_args(annotation)[0])
        return kind, (*marks, *annotation.__metadata__)
    if origin in (Union, UnionType):
        kind, marks = _parts(next(each for each in get_args(annotation) if each is not NoneType))
        return kind, (*marks, NoneType)
    return annotation, ()


def _key(path: str, kind: Any, marks: tuple[Any, ...], default: Any) -> HardwareKey:
    is_choice = get_origin(kind) is Literal
    draws = [each for each in marks if isinstance(each, Draw)]
    if is_choice:
        draws.insert(0, Among(get_args(kind)))
    meanings = [each for each in marks if isinstance(each, ActsOn)]
    meaning = meanings[-1] if meanings else ActsOn("")
    return HardwareKey(
        path=path,
        kind="choice" if is_choice else _KINDS.get(kind, "list"),
        unit=meaning.unit or _unit(path),
        bounds=_bounds(kind, marks),
        default=default,
        acts_on=meaning.text,
        since=meaning.since,
        draw=draws[-1] if draws else None,
        groups=frozenset(each for each in marks if isinstance(each, KeyGroup)),
    )


def _unit(path: str) -> str:
    """The unit at the end of the name, or of that of the nearest section which has one."""
    for name in reversed(path.split(".")):
        measure, per, divisor = name.partition("_per_")
        unit = _UNITS.get(measure.rpartition("_")[2])
        if unit:
            return f"{unit}/{divisor}" if per else unit
    return ""


def _bounds(kind: Any, marks: tuple[Any, ...]) -> str:
    if get_origin(kind) is tuple:
        element, own = _parts(get_args(kind)[0])
        bounds = _bounds(element, own)
        return bounds if bounds.startswith("each ") else f"each {bounds}"
    if get_origin(kind) is Literal:
        return ", ".join(get_args(kind))
    metas = [each for each in marks if isinstance(each, msgspec.Meta)]
    least = [each.ge for each in metas if each.ge is not None]
    most = [each.le for each in metas if each.le is not None]
    parts = [f"{max(least):,.10g}"] if least else []
    parts += [f"{min(most):,.10g}"] if most else []
    text = " to ".join(parts) if len(parts) != 1 or most else f"at least {parts[0]}"
    return f"{text} or null" if NoneType in marks else text
