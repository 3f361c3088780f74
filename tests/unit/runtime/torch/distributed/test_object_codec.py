"""The bytes of objects: plain data returns as it was, and nothing else is sent or made."""

import re
from collections import OrderedDict, namedtuple
from enum import IntEnum
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.msgpack import Ext

from runtime import torch
from runtime.torch.distributed.object_codec import decode, encode

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.complex_numbers(allow_nan=False)
    | st.text()
    | st.binary()
)
hashable = st.recursive(
    scalars, lambda each: st.tuples(each, each) | st.frozensets(each, max_size=3), max_leaves=4
)
data = st.recursive(
    hashable | st.sets(hashable, max_size=3),
    lambda each: (
        st.lists(each, max_size=3)
        | st.tuples(each, each)
        | st.dictionaries(hashable, each, max_size=3)
    ),
    max_leaves=6,
)


def same(first: Any, second: Any) -> bool:
    """Equal in value and in type, all the way down."""
    if type(first) is not type(second) or first != second:
        return False
    if isinstance(first, list | tuple):
        return all(same(a, b) for a, b in zip(first, second, strict=True))
    if isinstance(first, dict):
        return same(list(first.items()), list(second.items()))
    return True


@given(data)
def test_plain_data_returns_with_its_types(thing: Any) -> None:
    assert same(decode(encode(thing, "obj")), thing)


@pytest.mark.parametrize("dtype", [">f4", "int64", "bool", "complex64", torch.bfloat16.numpy])
def test_arrays_and_numbers_of_numpy_return(dtype: Any) -> None:
    array = np.arange(6).reshape(2, 3).astype(dtype)
    found = decode(encode([array, array[1, 2], array[:0]], "obj"))
    assert isinstance(found, list)
    np.testing.assert_array_equal(found[0], array)
    assert found[0].flags.writeable
    assert found[0].dtype.name == np.dtype(dtype).name
    assert found[1] == array[1, 2]
    assert found[2].shape == (0, 3)


def test_an_element_type_returns_as_itself() -> None:
    assert decode(encode({"dtype": torch.float16}, "obj")) == {"dtype": torch.float16}


def test_the_order_of_a_set_does_not_change_its_bytes() -> None:
    # Equal hashes modulo the size of the table: the first one inserted comes first.
    first, second = {0, 8}, {8, 0}
    assert list(first) != list(second)
    assert encode(first, "obj") == encode(second, "obj")


class Color(IntEnum):
    RED = 1


Pair = namedtuple("Pair", "a b")  # noqa: PYI024 - a type of user code


@pytest.mark.parametrize(
    ("thing", "path", "kind"),
    [
        (lambda: None, "obj", "function"),
        ({"model": [1, object()]}, "obj['model'][1]", "object"),
        ({(1, Color.RED): 2}, "obj key (1, <Color.RED: 1>)[1]", "Color"),
        (Pair(1, 2), "obj", "Pair"),
        (OrderedDict(a=1), "obj", "OrderedDict"),
        (np.array([object()]), "obj", "ndarray"),
        (np.ma.array([1], mask=True), "obj", "MaskedArray"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_what_is_no_plain_data_is_refused_with_its_path(thing: Any, path: str, kind: str) -> None:
    with pytest.raises(TypeError, match=f"^{re.escape(path)} is a {kind}, which cannot be sent:"):
        encode(thing, "obj")


def test_a_list_that_contains_itself_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(ValueError, match=r"^obj contains itself, or is nested too deeply"):
        encode(endless, "obj")


@pytest.mark.parametrize(
    "malformed",
    [
        b"",
        b"\x91",
        msgspec.msgpack.encode(Ext(99, b"\x01")),
        msgspec.msgpack.encode(Ext(1, msgspec.msgpack.encode([[1]]))),
        msgspec.msgpack.encode(Ext(6, msgspec.msgpack.encode(["object", [1], b"12345678"]))),
        msgspec.msgpack.encode(Ext(6, msgspec.msgpack.encode(["float32", [2], b"1234"]))),
        msgspec.msgpack.encode(Ext(8, msgspec.msgpack.encode("float1"))),
    ],
)
def test_malformed_bytes_are_an_error_and_make_nothing(malformed: bytes) -> None:
    with pytest.raises(ValueError, match=r"^the bytes of an object of another rank are malformed:"):
        decode(malformed)
