"""Functions that a generated kernel calls and the front end of Triton lacks, from its source.

The table of the front end itself decides: a function is absent if the builder's method for it ends
the program, `libdevice` has no entry for it, or an element type is none of the PE.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from inspect import getsource
from typing import Any, NoReturn, get_type_hints

from kernbench.triton import triton_api
from kernbench.triton.builder.builder import Builder
from kernbench.triton.builder.library import FUNCTIONS
from kernbench.triton.indices.element_types import memory_type

_CALL = re.compile(r"\b(tl|libdevice|triton_helpers)\.(\w+)\(")
_POINTER = re.compile(r"'\*(\w+)'")
_BUILDERS: Mapping[str, str] = {
    **{
        f"atomic_{each}": "create_atomic_rmw"
        for each in ("add", "max", "min", "and", "or", "xor", "xchg")
    },
    "atomic_cas": "create_atomic_cas",
    "gather": "create_gather",
    "inline_asm_elementwise": "create_inline_asm",
}
"""The methods of the builder behind functions that it may lack."""
_TYPES: Mapping[str, str] = {
    **{f"i{bits}": f"int{bits}" for bits in (1, 8, 16, 32, 64)},
    **{f"u{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
    "fp16": "float16",
    "bf16": "bfloat16",
    "fp32": "float32",
    "fp64": "float64",
    "fp8e4nv": "float8e4nv",
    "fp8e5": "float8e5",
}
"""The names of element types in the signature of a kernel, and in Triton's language."""


class AbsentFunctionError(Exception):
    """A generated kernel calls what the front end lacks: the kernel, and what it calls."""

    def __init__(self, kernel: str, absent: str) -> None:
        super().__init__(kernel, absent)

    def __str__(self) -> str:
        kernel, absent = self.args
        return f"kernel {kernel!r} has {absent}"


def check_kernel(name: str, source: str) -> None:
    """`AbsentFunctionError` if a kernel calls what the front end lacks."""
    absent = next(_absent(source), None)
    if absent is not None:
        raise AbsentFunctionError(name, absent)


def _absent(source: str) -> Iterator[str]:
    for kind in _POINTER.findall(source):
        if kind not in _TYPES or not _is_element_type(_TYPES[kind]):
            yield f"elements of type {_TYPES.get(kind, kind)}"
    yield from _absent_calls(source)


def _absent_calls(source: str) -> Iterator[str]:
    for owner, name in _CALL.findall(source):
        if owner == "tl":
            if name in _BUILDERS and _ends(_BUILDERS[name]):
                yield f"tl.{name}"
        elif owner == "libdevice":
            if name not in FUNCTIONS:
                yield f"libdevice.{name}"
        elif (inner := _inner(name)) is not None:
            yield f"triton_helpers.{name}: {inner}"


@cache
def _inner(name: str) -> str | None:
    """The absent function that one of Inductor's library calls, or None."""
    function = getattr(triton_api.module("torch._inductor.runtime.triton_helpers"), name, None)
    function = getattr(function, "fn", function)
    return None if function is None else next(_absent_calls(getsource(function)), None)


@cache
def _ends(method: str) -> bool:
    """Whether a method of the builder ends the program."""
    function = getattr(Builder, method, None)
    return function is None or get_type_hints(function).get("return") is NoReturn


@cache
def _is_element_type(name: str) -> bool:
    dtype: Any = getattr(triton_api.module("triton.language"), name)
    try:
        memory_type(dtype)
    except TypeError:
        return False
    return True
