"""The key by which the arguments of a launch choose a command list, and what is open in them.

Two launches have one key if their kernels are of the same code and their arguments differ in the
addresses of pointers and in floats only. So a key has the type of everything that compares equal to
another type (1, 1.0 and True), the code and the captured variables of functions. What it cannot
compare for certain, such as a list that a kernel may change, raises `NotListed`.

Floats are open where `OpenedArguments` can put another object in their place: among arguments, in
their parts, and in the variables that functions capture, but not in global variables.
"""

from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import lru_cache, partial
from types import FunctionType, MethodType
from typing import Any, ClassVar, Protocol, cast

import numpy as np

from runtime.core.dtypes import DType
from runtime.core.identity import Identity
from runtime.core.launch_numbers import packed
from runtime.language.value import Pointer
from sip_node.programs.lists.not_listed import NotListed
from sip_node.programs.lists.plain_code import adds_up, captured, is_own, is_plain_builtin

Key = tuple[object, ...]


class KeyedKernel(Protocol):
    """A kernel of another language, which states what its commands depend on beside its arguments:
    None if it cannot. It computes with addresses, and decides by its ids.
    """

    @property
    def list_key(self) -> Key | None:
        """Equal for kernels that are equal."""
        ...


class Argument:
    """An argument of a launch, or its kernel: its `key`, the `addresses` of the pointers in it, and
    the `numbers`, its open floats, in the order of the key. `reads_all` is whether none of them
    can be open, `is_guarded` whether its lists have guards (`guarded_integers`).

    Of a kernel that `is_own`, of the code which is taken as plain, lists are as good as tuples: it
    does not change them.
    """

    def __init__(self, each: object, *, is_own: bool) -> None:
        self.addresses: list[int] = []
        self.numbers: list[float] = []
        self.reads_all = self.is_guarded = False
        self._is_own = is_own
        # The functions that the key is inside of, by identity: one may call itself.
        self._inside: list[int] = []
        # Functions around the part that is added: the address of a pointer in them stays.
        self._depth = 0
        # Parts around it that stay what they are.
        self._closed = 0
        self.key: object = self._of(each)

    def _of(self, each: object) -> object:
        kind = type(each)
        if kind in PLAIN:
            return kind, each
        of = self._by_type.get(kind)
        return self._parts(each) if of is None else of(self, each)

    def _float(self, number: float) -> object:
        if self._closed:
            # Bits: NaN is not equal to itself, and 0.0 is equal to -0.0.
            return float, packed((number,))
        self.numbers.append(number)
        return float, None

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
        names = own_fields(kind)
        if names is not None:
            return (kind, *[self._of(getattr(each, name)) for name in names])
        if hasattr(kind, "list_key"):
            return self._of_another_language(cast("KeyedKernel", each))
        if kind is list and self._is_own:
            return self._items(cast("list[object]", each))
        if is_plain_builtin(each) or isinstance(each, np.ufunc):
            self.reads_all |= each is sum
            return Identity(each)
        # Methods of a class of a user are code that has not been examined.
        if is_own(kind.__module__):
            if isinstance(each, tuple):
                return self._items(cast("tuple[object, ...]", each))
            if isinstance(each, Enum):
                return Identity(each)
        raise NotListed(f"an argument of type {kind.__name__}")

    def _of_another_language(self, kernel: KeyedKernel) -> object:
        if kernel.list_key is None:
            raise NotListed("a kernel that states no key")
        self.is_guarded = self.reads_all = True
        return type(kernel), kernel.list_key

    def _function(self, function: FunctionType) -> object:
        code = function.__code__
        # Not by the code: a function may capture another one of the same code.
        if id(function) in self._inside:
            # By the name of a global variable it calls itself, and not its copy with open numbers.
            self.reads_all |= self._closed > 0
            return Identity(code)
        self._inside.append(id(function))
        self.reads_all |= adds_up(function)
        given = tuple((function.__kwdefaults__ or {}).items())
        variables, cells = tuple(captured(function)), len(code.co_freevars)
        key = self._bound(FunctionType, function.__defaults__, given, variables[:cells])
        self._closed += 1
        key = key, self._bound(FunctionType, variables[cells:])
        self._closed -= 1
        self._inside.pop()
        return Identity(code), key

    _by_type: ClassVar[dict[type, Callable[..., object]]] = {
        float: _float,
        DType: _dtype,
        tuple: _items,
        Pointer: _pointer,
        FunctionType: _function,
        MethodType: _method,
        partial: _partial,
    }


PLAIN = (int, bool, str, bytes, type(None))
"""Types whose objects are equal if they are the same, among those of their own type."""


@lru_cache(maxsize=1 << 10)
def own_fields(kind: type[Any]) -> tuple[str, ...] | None:
    """The fields that make up the key of our own data of a type; None for another type."""
    if not is_own(kind.__module__) or hasattr(kind, "list_key") or issubclass(kind, Enum):
        return None
    if issubclass(kind, tuple):
        return cast("tuple[str, ...] | None", getattr(cast("object", kind), "_fields", None))
    return tuple(field_names(kind)) if is_frozen(kind) else None


def is_frozen(each: object) -> bool:
    """Whether an object is one of a frozen dataclass."""
    parameters: Any = getattr(each, "__dataclass_params__", None)
    return is_dataclass(each) and parameters.frozen


def field_names(each: Any) -> list[str]:
    """The names of the fields of an object of data."""
    return [field.name for field in fields(each)]
