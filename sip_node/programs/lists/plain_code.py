"""Code whose effect follows from its arguments alone, so that one call of it stands for all.

The code of kernbench is taken as such: its kernels read no clock, no file and no global variable
that changes. The code of a user is examined, instruction by instruction: it may compute with its
arguments, with captured and global constants, with functions of `tl` and with other functions of
this kind. It may not change what others see, catch exceptions, or read what the simulation hides
from a kernel, such as addresses and elements.
"""

import builtins
import math
from collections.abc import Iterator
from dis import get_instructions
from functools import lru_cache
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType

from msgspec import Struct

from runtime.language import tl
from sip_node.programs.lists.not_listed import NotListed

OWN = (
    "runtime.",
    *("kernbench.benches.", "kernbench.studies.", "kernbench.torch_backend.", "kernbench.triton."),
)
"""The packages whose code is taken as plain."""
_MODULES = (tl, math)
_BUILTINS = frozenset(
    {
        *("abs", "all", "any", "bool", "divmod", "enumerate", "float", "int", "len", "list"),
        *("max", "min", "range", "reversed", "round", "sorted", "sum", "tuple", "zip"),
    }
)
_HIDDEN = frozenset({"address", "data", "elements_of", "extent", "operand", "scope", "tobytes"})
"""Attributes of operands that a kernel of a user has no use for, and a list does not have."""
_BY_TYPE = frozenset({"sumprod"})
"""Functions that compute with floats in another way than with other objects, by their type."""
_CHANGES = frozenset(
    {
        "STORE_ATTR",
        "DELETE_ATTR",
        "STORE_GLOBAL",
        "DELETE_GLOBAL",
        "IMPORT_NAME",
        "LOAD_BUILD_CLASS",
    }
)
_STORES = frozenset({"STORE_DEREF", "DELETE_DEREF"})


def is_own(module: str | None) -> bool:
    """Whether a module is of the code that is taken as plain."""
    return module is not None and module.startswith(OWN)


def is_plain_builtin(function: object) -> bool:
    """Whether a function of Python itself only computes: one of those above, or of `math`, or a
    type that is used in annotations.
    """
    if not isinstance(function, BuiltinFunctionType | type):
        return False
    if function.__module__ in (math.__name__, "typing", "collections.abc"):
        return function.__name__ not in _BY_TYPE
    return function.__module__ == builtins.__name__ and function.__name__ in _BUILTINS


def adds_up(function: FunctionType) -> bool:
    """Whether a function of a user may call `sum`: it adds floats as no sums of two do."""
    return not is_own(function.__module__) and sum.__name__ in _examined(function.__code__).globals


def captured(function: FunctionType) -> Iterator[tuple[str, object]]:
    """The variables on which a function depends beside its arguments, by name.

    Raises `NotListed` for a function that depends on more, or does more than return a value.
    """
    names = function.__code__.co_freevars
    for name, cell in zip(names, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:
            raise NotListed(f"{function.__name__} uses {name} before it is set") from None
    if is_own(function.__module__):
        return
    examined = _examined(function.__code__)
    if examined.problem:
        raise NotListed(f"{function.__name__} {examined.problem}")
    for name in examined.globals:
        value = function.__globals__.get(name, getattr(builtins, name, None))
        if isinstance(value, ModuleType):
            if value not in _MODULES:
                raise NotListed(f"{function.__name__} uses module {value.__name__}")
        elif not is_plain_builtin(value):
            yield name, value


class _Examined(Struct, frozen=True):
    """The global names that a function reads, and why it is not plain, if it is not."""

    globals: tuple[str, ...]
    problem: str


@lru_cache(maxsize=4096)
def _examined(code: CodeType) -> _Examined:
    names = dict[str, None]()
    problem = next(_problems(code, frozenset(code.co_freevars), names), "")
    return _Examined(tuple(names), problem)


def _problems(code: CodeType, outer: frozenset[str], names: dict[str, None]) -> Iterator[str]:
    """Why code is not plain, whose captured variables are `outer`; adds the globals to `names`."""
    instructions = list(get_instructions(code))
    for index, each in enumerate(instructions):
        kind, name = each.opname, each.argval
        if kind in _CHANGES or (kind in _STORES and name in outer):
            yield f"may change what others see ({kind} {name})"
        elif kind == "PUSH_EXC_INFO" and instructions[index + 1].opname != "WITH_EXCEPT_START":
            yield "catches exceptions"
        elif kind == "LOAD_GLOBAL":
            names[name] = None
        elif kind in ("LOAD_ATTR", "LOAD_METHOD") and (
            name in _HIDDEN | _BY_TYPE
            or name.startswith("_")
            or isinstance(getattr(tl, name, 0), ModuleType)
        ):
            yield f"uses {name}"
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _problems(constant, outer, names)
