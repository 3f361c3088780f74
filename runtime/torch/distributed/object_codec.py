"""Python objects as bytes, for the object collectives: MessagePack of plain data.

PyTorch pickles objects. Here the bytes of another rank arrive through a socket, perhaps from
another host, and unpickling runs code that the sender chooses. So only data is encoded, and
decoding makes nothing but these types:

    None, bool, int, float, complex, str, bytes, list, tuple, set, frozenset, dict, torch.dtype,
    numpy arrays and numbers

Types are exact: a subclass would arrive as its base class. Equal objects have equal bytes: the
order that a set has in this process does not matter.
"""

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, cast

import msgspec
import numpy as np
from msgspec.msgpack import Ext

from runtime.core import dtypes
from runtime.core.dtypes import DType
from runtime.language.value import Array

_TUPLE, _SET, _FROZENSET, _DICT, _INT, _COMPLEX, _ARRAY, _NUMBER, _DTYPE = range(9)
_PLAIN = (type(None), bool, float, str, bytes)
_WORD = range(-(1 << 63), 1 << 63)


def encode(thing: object, name: str) -> bytes:
    """The bytes of an object; `TypeError` with the path from `name` to what is no plain data."""
    try:
        return msgspec.msgpack.encode(_tree(thing, name))
    except RecursionError:
        raise ValueError(f"{name} contains itself, or is nested too deeply to be sent") from None


def decode(data: bytes | bytearray | memoryview) -> object:
    """The object of these bytes; `ValueError` for bytes that `encode` does not make."""
    try:
        return _decoded(data)
    except (msgspec.DecodeError, TypeError, ValueError, LookupError, RecursionError) as error:
        raise ValueError(f"the bytes of an object of another rank are malformed: {error}") from None


def _tree(thing: object, path: str) -> object:
    """The object with MessagePack's own types and extensions only."""
    kind = type(thing)
    if kind in _PLAIN:
        return thing
    if kind is list:
        return _trees(cast("list[object]", thing), path)
    if kind is dict:
        items = cast("dict[object, object]", thing).items()
        pairs = [
            [_tree(key, f"{path} key {key!r}"), _tree(value, f"{path}[{key!r}]")]
            for key, value in items
        ]
        return _extension(_DICT, pairs)
    if kind in _SEQUENCES:
        return _extension(_SEQUENCES[kind], _trees(cast("Iterable[object]", thing), path))
    if kind in _SETS:
        members = _trees(cast("Iterable[object]", thing), path)
        return _extension(_SETS[kind], sorted(members, key=msgspec.msgpack.encode))
    return _scalar(thing, path)


def _scalar(thing: object, path: str) -> object:
    if type(thing) is int:
        if thing in _WORD:
            return thing
        return Ext(_INT, thing.to_bytes(thing.bit_length() // 8 + 1, signed=True))
    if type(thing) is complex:
        return _extension(_COMPLEX, [thing.real, thing.imag])
    if isinstance(thing, DType):
        return _extension(_DTYPE, thing.torch_name)
    if isinstance(thing, np.generic | np.ndarray) and not isinstance(thing, np.ma.MaskedArray):
        array: Array = np.asarray(cast("Array", thing))
        name = array.dtype.name
        if name in _known_arrays():
            # In the byte order of the type's name, which does not show another one.
            elements = array.astype(_known_arrays()[name]).tobytes()
            tag = _ARRAY if isinstance(thing, np.ndarray) else _NUMBER
            return _extension(tag, [name, list(array.shape), elements])
    kind = type(cast("object", thing)).__name__
    raise TypeError(
        f"{path} is a {kind}, which cannot be sent: object collectives send plain "
        "data (numbers, str, bytes, lists, tuples, sets, dicts, numpy arrays) and no objects with "
        "code, since kernbench does not unpickle what another process has sent"
    )


def _trees(things: Iterable[object], path: str) -> list[object]:
    return [_tree(each, f"{path}[{index}]") for index, each in enumerate(things)]


def _extension(tag: int, content: object) -> Ext:
    return Ext(tag, msgspec.msgpack.encode(content))


def _decoded(data: bytes | bytearray | memoryview) -> Any:
    return msgspec.msgpack.decode(data, ext_hook=_restored)


def _restored(tag: int, data: memoryview) -> object:
    if tag == _INT:
        return int.from_bytes(data, signed=True)
    content = _decoded(data)
    if tag in _MADE:
        return _MADE[tag](content)
    if tag in {_ARRAY, _NUMBER}:
        name, shape, elements = content
        if name not in _known_arrays():
            raise TypeError(f"an array of {name!r}")
        array = np.frombuffer(elements, _known_arrays()[name]).reshape(shape)
        return array.copy() if tag == _ARRAY else array[()]
    raise TypeError(f"unknown extension {tag}")


_SEQUENCES: dict[type, int] = {tuple: _TUPLE}
_SETS: dict[type, int] = {set: _SET, frozenset: _FROZENSET}
_MADE: dict[int, Callable[[Any], object]] = {
    _TUPLE: tuple,
    _SET: set,
    _FROZENSET: frozenset,
    _DICT: dict,
    _COMPLEX: lambda parts: complex(*parts),
    _DTYPE: {dtype.torch_name: dtype for dtype in dtypes.ALL}.__getitem__,
}


# Not where it is imported: bfloat16 needs a package that few programs load.
@cache
def _known_arrays() -> dict[str, np.dtype[Any]]:
    """The element types of arrays that are sent, by name."""
    own = ("bool", "complex64", "complex128", "float64", "int16")
    more = ("int64", "uint8", "uint16", "uint32", "uint64")
    known = [*map(np.dtype, (*own, *more)), *(each.numpy for each in dtypes.ALL)]
    return {dtype.name: dtype for dtype in known}
