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
from types import CodeType, FunctionType, MethodType
from typing import Any, cast

import numpy as np

from runtime.core.dtypes import DType
from runtime.language.value import Pointer
from sip_node.programs.lists.plain_code import captured, is_own, is_plain_builtin
from sip_node.programs.lists.recorder import BasedPointer, NotListed

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
    in the order in which the key comes to them.

    Of a kernel that `is_own`, of the code which is taken as plain, lists are as good as tuples: it
    does not change them.
    """

    def __init__(self, each: object, *, is_own: bool) -> None:
        self.addresses: list[int] = []
        self._is_own = is_own
        # The functions that the key is inside of: one may call itself.
        self._inside: list[CodeType] = []
        self.key: object = self._of(each)

    def _of(self, each: object) -> object:
        kind = type(each)
        of = _PLAIN.get(kind)
        if of is not None:
            return of(self, each)
        if kind is tuple or (kind is list and self._is_own):
            return (kind, *map(self._of, cast("tuple[object, ...]", each)))
        if is_plain_builtin(each) or isinstance(each, np.ufunc):
            return _Same(each)
        # Methods of a class of a user are code that has not been examined.
        if is_own(kind.__module__):
            if isinstance(each, tuple):
                return (kind, *map(self._of, cast("tuple[object, ...]", each)))
            if isinstance(each, Enum):
                return _Same(each)
            if is_dataclass(each) and kind.__dataclass_params__.frozen:  # pyright: ignore[reportAttributeAccessIssue,reportUnknownMemberType,reportUnknownVariableType] - dataclasses have it
                return (kind, *(self._of(getattr(each, field.name)) for field in fields(each)))
        raise NotListed(f"an argument of type {kind.__name__}")

    def _pointer(self, pointer: Pointer) -> object:
        self.addresses.append(pointer.address)
        return Pointer, pointer.dtype.name

    def _function(self, function: object) -> object:
        if isinstance(function, MethodType):
            return MethodType, self._function(function.__func__), self._of(function.__self__)
        if isinstance(function, partial):
            given = cast("partial[object]", function)
            keywords = tuple(sorted(given.keywords.items()))
            return partial, self._function(given.func), self._of(given.args), self._of(keywords)
        if not isinstance(function, FunctionType):
            return self._of(function)
        code = function.__code__
        if code in self._inside:
            return _Same(code)
        self._inside.append(code)
        key = (
            _Same(code),
            self._of(function.__defaults__),
            *((name, self._of(each)) for name, each in (function.__kwdefaults__ or {}).items()),
            *((name, self._of(each)) for name, each in captured(function)),
        )
        self._inside.pop()
        return key


def _typed(_: Argument, each: object) -> object:
    return type(each), each


def _float(_: Argument, each: object) -> object:
    # Bits: NaN is not equal to itself, and 0.0 is equal to -0.0.
    return float, cast("float", each).hex()


_PLAIN: Mapping[type, Callable[[Argument, Any], object]] = {
    int: _typed,
    bool: _typed,
    str: _typed,
    bytes: _typed,
    type(None): _typed,
    float: _float,
    DType: lambda _, each: (DType, each.name),
    Pointer: Argument._pointer,  # noqa: SLF001 - of this class
    FunctionType: Argument._function,  # noqa: SLF001
    MethodType: Argument._function,  # noqa: SLF001
    partial: Argument._function,  # noqa: SLF001
}


def based(arguments: Sequence[object]) -> tuple[object, ...]:
    """The arguments with pointers whose addresses are open, numbered as the keys come to them."""
    count = 0

    def of(each: Any) -> Any:
        nonlocal count
        if type(each) is Pointer:
            count += 1
            return BasedPointer(count - 1, 0, each.dtype)
        if isinstance(each, tuple | list):
            parts = [of(part) for part in cast("Sequence[object]", each)]
            if type(each) is tuple or type(each) is list:
                return type(each)(parts)
            return cast("Any", each)._make(parts)
        if is_dataclass(each) and not isinstance(each, type) and type(each) is not DType:
            values = {field.name: of(getattr(each, field.name)) for field in fields(each)}
            changed = any(values[name] is not getattr(each, name) for name in values)
            return _with_fields(each, values) if changed else each
        return each

    return tuple(map(of, arguments))


def _with_fields(each: Any, values: Mapping[str, object]) -> Any:
    """A copy of an object of data with other fields."""
    copied = object.__new__(type(each))
    for name, value in values.items():
        object.__setattr__(copied, name, value)
    return copied
