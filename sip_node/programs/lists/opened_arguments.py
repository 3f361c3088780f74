"""The arguments of a kernel while it is recorded: with pointers whose addresses are open, and open
numbers in place of floats.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from types import CellType, FunctionType, MethodType
from typing import Any, ClassVar, cast

from runtime.core.dtypes import DType
from runtime.language.value import Pointer
from sip_node.programs.lists.arguments import field_names, is_frozen
from sip_node.programs.lists.open_ids import OpenId
from sip_node.programs.lists.open_numbers import OpenNumber
from sip_node.programs.lists.recorder import BasedPointer


class OpenedArguments:
    """Makes arguments open, which it takes in the order of the keys: so pointers and numbers have
    the places that they have in the lists of `Argument`. The numbers with places in `reads` stay
    what they are.
    """

    def __init__(self, reads: Collection[int]) -> None:
        self._reads = reads
        self._pointers = self.numbers = 0
        # How often something was made open.
        self._opened = 0
        # The copies of functions that a part is inside of, by the identity of the original.
        self._inside: dict[int, FunctionType] = {}

    def of(self, each: Any) -> Any:
        """An argument, or the kernel: a copy if something in it is open."""
        before = self._opened
        made = self._made(each)
        return made if self._opened > before else each

    def _made(self, each: Any) -> Any:
        kind = cast("type[Any]", type(each))
        of = self._by_type.get(kind)
        if of is not None:
            return of(self, each)
        if isinstance(each, tuple):
            # With names.
            return kind._make(self._items(cast("tuple[object, ...]", each)))
        if is_frozen(each) and kind is not DType:
            return _with_fields(
                each, {name: self.of(getattr(each, name)) for name in field_names(each)}
            )
        return each

    def _items(self, items: Sequence[object]) -> list[Any]:
        return [self.of(each) for each in items]

    def _tuple(self, items: tuple[object, ...]) -> tuple[Any, ...]:
        return tuple(self._items(items))

    def _pointer(self, pointer: Pointer) -> BasedPointer:
        self._pointers += 1
        self._opened += 1
        return BasedPointer(self._pointers - 1, OpenId({}), pointer.dtype)

    def _method(self, method: MethodType) -> MethodType:
        return MethodType(self.of(method.__func__), self.of(method.__self__))

    def _partial(self, function: "partial[object]") -> "partial[object]":
        inner, given = self.of(function.func), self.of(function.args)
        keywords = {name: self.of(function.keywords[name]) for name in sorted(function.keywords)}
        return partial(inner, *given, **keywords)

    def _float(self, number: float) -> Any:
        place = self.numbers
        self.numbers += 1
        if place in self._reads:
            return number
        self._opened += 1
        return OpenNumber.given(place)

    def _function(self, function: FunctionType) -> FunctionType:
        if id(function) in self._inside:
            # One that calls itself: what calls it calls the copy.
            self._opened += 1
            return self._inside[id(function)]
        cells = tuple([CellType() for _ in function.__closure__ or ()])
        copied = FunctionType(
            function.__code__, function.__globals__, function.__name__, None, cells or None
        )
        self._inside[id(function)] = copied
        copied.__defaults__ = self.of(function.__defaults__)
        given = function.__kwdefaults__
        copied.__kwdefaults__ = given and {name: self.of(each) for name, each in given.items()}
        for cell, original in zip(cells, function.__closure__ or (), strict=True):
            cell.cell_contents = self.of(original.cell_contents)
        del self._inside[id(function)]
        copied.__qualname__, copied.__module__ = function.__qualname__, function.__module__
        copied.__dict__.update(function.__dict__)
        return copied

    _by_type: ClassVar[dict[type, Callable[..., Any]]] = {
        float: _float,
        list: _items,
        tuple: _tuple,
        Pointer: _pointer,
        FunctionType: _function,
        MethodType: _method,
        partial: _partial,
    }


def _with_fields(each: Any, values: Mapping[str, object]) -> Any:
    """A copy of an object of data with other fields."""
    copied: Any = object.__new__(cast("type[Any]", type(each)))
    for name, value in values.items():
        object.__setattr__(copied, name, value)
    return copied
