"""The key by which the arguments of a launch choose a command list, and the pointers among them.

Two launches have one key if their kernels are of the same code and their arguments differ in the
addresses of pointers only. So a key has the type of everything that compares equal to another type
(1, 1.0 and True), the bits of floats, the code and the captured variables of functions. What it
cannot compare for certain, such as a list that a kernel may change, raises `NotListed`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import partial
from types import FunctionType, MethodType
from typing import Any, ClassVar, cast

import numpy as np

from runtime.core.dtypes import DType
from runtime.language.value import Pointer
from sip_node.programs.lists.not_listed import NotListed
from sip_node.programs.lists.open_ids import OpenId
from sip_node.programs.lists.plain_code import captured, is_own, is_plain_builtin
from sip_node.programs.lists.recorder import BasedPointer

Key = tuple[object, ...]


class _Same:
    """An object that is equal to itself only, and kept while a key names it."""

    __slots__ = ("_each",)

    def __init__(self, each: object) -> None:
        self._each = each

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self._each is other._each

    def __hash__(self) -> int:
        return id(self._each)


class Argument:
    """An argument of a launch, or its kernel: its `key`, and the `addresses` of the pointers in it,
    in the order of the key.

    Of a kernel that `is_own`, of the code which is taken as plain, lists are as good as tuples: it
    does not change them.
    """

    def __init__(self, each: object, *, is_own: bool) -> None:
        self.addresses: list[int] = []
        self._is_own = is_own
        # The functions that the key is inside of, by identity: one may call itself.
        self._inside: list[int] = []
        # Functions around the part that is added: the address of a pointer in them stays.
        self._depth = 0
        self.key: object = self._of(each)

    def _of(self, each: object) -> object:
        kind = type(each)
        if kind in _PLAIN:
            return kind, each
        of = self._by_type.get(kind)
        return self._parts(each) if of is None else of(self, each)

    def _float(self, number: float) -> object:
        # Bits: NaN is not equal to itself, and 0.0 is equal to -0.0.
        return float, number.hex()

    def _dtype(self, dtype: DType) -> object:
        return DType, dtype.name

    def _items(self, items: Sequence[object]) -> object:
        return (type(items), *map(self._of, items))

    def _pointer(self, pointer: Pointer) -> object:
        if self._depth:
            raise NotListed("a function with a pointer")
        self.addresses.append(pointer.address)
        return Pointer, pointer.dtype.name

    def _method(self, method: MethodType) -> object:
        return self._bound(MethodType, method.__func__, method.__self__)

    def _partial(self, function: "partial[object]") -> object:
        keywords = tuple(sorted(function.keywords.items()))
        return self._bound(partial, function.func, function.args, keywords)

    def _bound(self, kind: type, *parts: object) -> object:
        """The key of a function with arguments of its own."""
        self._depth += 1
        key = (kind, *map(self._of, parts))
        self._depth -= 1
        return key

    def _parts(self, each: object) -> object:
        kind = type(each)
        if kind is list and self._is_own:
            return self._items(cast("list[object]", each))
        if is_plain_builtin(each) or isinstance(each, np.ufunc):
            return _Same(each)
        # Methods of a class of a user are code that has not been examined.
        if is_own(kind.__module__):
            if isinstance(each, tuple):
                return self._items(cast("tuple[object, ...]", each))
            if isinstance(each, Enum):
                return _Same(each)
            if _is_frozen(each):
                return (kind, *(self._of(getattr(each, name)) for name in _field_names(each)))
        raise NotListed(f"an argument of type {kind.__name__}")

    def _function(self, function: FunctionType) -> object:
        code = function.__code__
        # Not by the code: a function may capture another one of the same code.
        if id(function) in self._inside:
            return _Same(code)
        self._inside.append(id(function))
        given = tuple((function.__kwdefaults__ or {}).items())
        key = self._bound(FunctionType, function.__defaults__, given, tuple(captured(function)))
        self._inside.pop()
        return _Same(code), key

    _by_type: ClassVar[dict[type, Callable[..., object]]] = {
        float: _float,
        DType: _dtype,
        tuple: _items,
        Pointer: _pointer,
        FunctionType: _function,
        MethodType: _method,
        partial: _partial,
    }


_PLAIN = (int, bool, str, bytes, type(None))
"""Types whose objects are equal if they are the same, among those of their own type."""


def _is_frozen(each: object) -> bool:
    """Whether an object is one of a frozen dataclass."""
    parameters: Any = getattr(each, "__dataclass_params__", None)
    return is_dataclass(each) and parameters.frozen


def _field_names(each: Any) -> list[str]:
    return [field.name for field in fields(each)]


def based(arguments: Sequence[object]) -> tuple[object, ...]:
    """The arguments with pointers whose addresses are open, numbered in the order of the keys."""
    count = 0

    def of(each: Any) -> Any:
        nonlocal count
        if type(each) is Pointer:
            count += 1
            return BasedPointer(count - 1, OpenId({}), each.dtype)
        if isinstance(each, tuple | list):
            parts = [of(part) for part in cast("Sequence[object]", each)]
            if type(each) is list:  # pyright: ignore[reportUnknownArgumentType] - of anything
                return parts
            return tuple(parts) if type(each) is tuple else cast("Any", each)._make(parts)  # pyright: ignore[reportUnknownArgumentType] - the same
        if _is_frozen(each) and not isinstance(each, DType):
            values = {name: of(getattr(each, name)) for name in _field_names(each)}
            if any(value is not getattr(each, name) for name, value in values.items()):
                return _with_fields(each, values)
        return each

    return tuple(map(of, arguments))


def _with_fields(each: Any, values: Mapping[str, object]) -> Any:
    """A copy of an object of data with other fields."""
    copied: Any = object.__new__(cast("type[Any]", type(each)))
    for name, value in values.items():
        object.__setattr__(copied, name, value)
    return copied
