"""The page of the protocol describes every struct that crosses a process boundary, field by field.

The tables of the page are compared with the structs by reflection: the name, the order and the type
of each field, the range of each type, the kinds of packets, and the version.
"""

import re
import types
from collections.abc import Iterator
from enum import EnumMeta
from pathlib import Path
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import pytest
from msgspec import Meta, Struct

from runtime.core.trace import OpRecord
from runtime.wire.control import FromCoordinator, FromLp
from runtime.wire.fields import PROTOCOL_VERSION
from runtime.wire.frames import Envelope
from runtime.wire.packets import PacketKind, PacketRun

PAGE = Path(__file__).parents[4] / "docs" / "internals" / "protocol.md"
# A run of packets is a block of bytes in a message, so no struct refers to it.
ROOTS = (Envelope, PacketRun, *get_args(FromLp), *get_args(FromCoordinator), OpRecord)


def rows_of(heading: str, page: str) -> list[list[str]]:
    """The rows of the first table below a heading, without its head and without backquotes."""
    section = page.split(f"{heading}\n", 1)[1]
    section = re.split(r"^#", section, maxsplit=1, flags=re.MULTILINE)[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in lines[2:]]


def documented(page: str) -> dict[str, list[tuple[str, str]]]:
    """Struct -> (field, type) in order, as the page has them."""
    names = re.findall(r"^#### `(\w+)`$", page, flags=re.MULTILINE)
    assert len(names) == len(set(names)), "a struct has two sections"
    return {
        name: [(field, kind) for field, kind, *_ in rows_of(f"#### `{name}`", page)]
        for name in names
    }


def structs(*roots: Any) -> dict[str, type[Struct]]:
    """Every struct that the fields of the roots reach, by name."""
    found: dict[str, type[Struct]] = {}
    pending = list(roots)
    while pending:
        kind = pending.pop()
        if isinstance(kind, type) and issubclass(kind, Struct):
            if kind.__name__ not in found:
                found[kind.__name__] = kind
                pending += get_type_hints(kind, include_extras=True).values()
        else:
            pending += get_args(kind)
    return found


def fields_of(struct: type[Struct]) -> list[tuple[str, str]]:
    """(field, type) in the order of the wire."""
    hints = get_type_hints(struct, include_extras=True)
    return [(name, text_of(hints[name])) for name in struct.__struct_fields__]


def text_of(kind: Any) -> str:
    """A type as the page writes it."""
    arguments = get_args(kind)
    origin = get_origin(kind)
    if origin is Annotated:
        title = arguments[1].title
        assert title, f"{kind} has no title, so the page cannot name it"
        return title
    if origin is tuple and arguments[-1] is Ellipsis:
        inner = text_of(arguments[0])
        return f"({inner})[]" if " or " in inner else f"{inner}[]"
    if origin is tuple:
        return f"({', '.join(text_of(each) for each in arguments)})"
    if origin in (Union, types.UnionType):
        return " or ".join(
            "none" if each is types.NoneType else text_of(each) for each in arguments
        )
    if origin is dict:
        return f"map {text_of(arguments[0])} to {text_of(arguments[1])}"
    return kind.__name__


def ranges(*roots: type[Struct]) -> dict[str, str]:
    """Named type -> its range, for every named type of a field."""
    return {
        meta.title: range_of(base, meta)
        for struct in structs(*roots).values()
        for kind in get_type_hints(struct, include_extras=True).values()
        for base, meta in named_types(kind)
    }


def named_types(kind: Any) -> Iterator[tuple[type, Meta]]:
    if get_origin(kind) is Annotated:
        yield get_args(kind)[0], get_args(kind)[1]
    elif not isinstance(kind, EnumMeta):
        for each in get_args(kind):
            yield from named_types(each)


def range_of(base: type, meta: Meta) -> str:
    if meta.max_length is not None:
        return f"{base.__name__} of at most {number(meta.max_length)}"
    if base is float:
        return f"float >= {meta.ge}"
    largest = meta.le if meta.le is not None else (meta.lt or 0) - 1
    return f"{meta.ge}..{number(int(largest))}"


def number(value: int) -> str:
    """2^n and 2^n - 1 where a number is long."""
    for exponent in range(10, 64):
        if value == 1 << exponent:
            return f"2^{exponent}"
        if value == (1 << exponent) - 1:
            return f"2^{exponent} - 1"
    return str(value)


@pytest.fixture(scope="module")
def page() -> str:
    return PAGE.read_text(encoding="utf-8")


def test_the_page_has_the_structs_of_the_wire_and_no_others(page: str) -> None:
    assert sorted(documented(page)) == sorted(structs(*ROOTS))


@pytest.mark.parametrize("name", sorted(structs(*ROOTS)))
def test_the_fields_of_a_struct_are_those_of_its_table_in_their_order(name: str, page: str) -> None:
    assert documented(page)[name] == fields_of(structs(*ROOTS)[name])


def test_the_ranges_of_the_named_types_are_those_of_the_page(page: str) -> None:
    assert {name: span for name, span, *_ in rows_of("### Types", page)} == ranges(*ROOTS)


def test_the_kinds_of_packets_are_those_of_the_page(page: str) -> None:
    kinds = {name: int(value) for value, name, *_ in rows_of("### Kinds of packets", page)}
    assert kinds == {kind.name: kind.value for kind in PacketKind}


def test_the_version_of_the_page_is_that_of_the_code(page: str) -> None:
    assert re.findall(r"`PROTOCOL_VERSION` is (\d+)", page) == [str(PROTOCOL_VERSION)]


def test_a_field_that_one_side_lacks_is_found(page: str) -> None:
    """A changed table and a changed struct both differ, on which the comparison above rests."""

    class Grant(Struct, array_like=True):
        lbts_ps: int
        more: int

    assert documented(page)["Grant"] != fields_of(Grant)
    without = page.replace("| `null_hops` |", "| `hops` |")
    assert documented(without)["Frame"] != fields_of(structs(*ROOTS)["Frame"])
