"""The keys of a configuration file with single values, by the annotations of its `Section`."""

from collections.abc import Iterator, Mapping
from types import NoneType, UnionType
from typing import Annotated, Any, Union, cast, get_args, get_origin, get_type_hints

from runtime.core.config.section import Section


def value_keys(content: Mapping[str, Any], schema: type[Section]) -> dict[str, Any]:
    """The annotations of all numbers, names and switches by their key paths, also of those that
    `content` omits.

    Sections with names of the user, such as those of algorithms, are those of `content`.
    """
    return dict(_of(content, schema, ""))


def _of(content: Any, annotation: Any, path: str) -> Iterator[tuple[str, Any]]:
    kind = _bare(annotation)
    origin = get_origin(kind)
    inner = cast("Mapping[str, Any]", content if isinstance(content, dict) else {})
    prefix = f"{path}." if path else ""
    if isinstance(kind, type) and issubclass(kind, Section):
        for key, of_key in get_type_hints(kind, include_extras=True).items():
            yield from _of(inner.get(key), of_key, prefix + key)
    elif origin in (dict, Mapping):
        for key in inner:
            # As `config_file.path_names` reads it.
            path_of_key = f"{path}[{key}]" if "." in key and "[" not in path else prefix + key
            yield from _of(inner[key], get_args(kind)[1], path_of_key)
    elif origin is not tuple:
        yield path, annotation


def _bare(kind: Any) -> Any:
    """The annotation without ranges, and without null."""
    if get_origin(kind) is Annotated:
        return _bare(get_args(kind)[0])
    if get_origin(kind) in (Union, UnionType):
        return _bare(next(each for each in get_args(kind) if each is not NoneType))
    return kind
