"""Keeps the frame hook of `torch.compile` out of the functions of the device.

TorchDynamo compiles Python by a hook that CPython calls for each new frame of a thread. The hook is
off inside a compiled graph. After a graph break, and in the parts of a model that are not compiled,
operators run with the hook on, and it would compile the Python of their kernels, function by
function. Each function that PyTorch calls is marked once, when the device is connected: CPython
then runs its frame, and all frames below, without the hook. A mark is a field of the code object,
which costs a call nothing and does not import TorchDynamo.
"""
# The C++ part of TorchDynamo has no public names, and the stub of `torch._C` has not all of it.
# pyright: reportPrivateUsage=false
# ruff: noqa: SLF001

from collections.abc import Callable
from functools import partial
from itertools import chain
from types import FunctionType
from typing import Any, TypeVar

import torch

from runtime.core.code.package_check import is_own

_UNTYPED: Any = torch._C
_HOOK = _UNTYPED._dynamo.eval_frame
Class = TypeVar("Class", bound=type)
_OFF = _HOOK._FrameExecStrategy(_HOOK._FrameAction.SKIP, _HOOK._FrameAction.SKIP)
"""The hook is off in a frame, and in those below it."""


def untraced(function: Callable[..., Any]) -> None:
    """Let the hook compile neither a function of kernbench nor what it calls. One that wraps it or
    that it wraps, such as those of `contextlib` and of PyTorch, keeps the hook.
    """
    layer: Any = function.func if isinstance(function, partial) else function
    while layer is not None:
        code = getattr(layer, "__code__", None)
        if code is not None and is_own(code.co_filename):
            _HOOK.set_code_exec_strategy(code, _OFF)
        layer = getattr(layer, "__wrapped__", None)


def refused_in_graphs(function: Any) -> None:
    """Let a compiled function call this one between two graphs: it acts when it is called, on a
    device that no guard describes.
    """
    untraced(function)
    function._torchdynamo_disable = True
    function._torchdynamo_disable_msg = "it acts on the simulated device"


def constant_in_graphs(function: Any) -> None:
    """Let a compiled function have the present result of this one, which never changes."""
    untraced(function)
    function._dynamo_marked_constant = True


def untraced_methods(owner: Class) -> Class:
    """Let the hook not compile the methods of a class and of its bases; a decorator."""
    for value in chain.from_iterable(vars(base).values() for base in owner.__mro__):
        method = getattr(value, "__func__", value)
        accessors = (value.fget, value.fset) if isinstance(value, property) else (method,)
        for each in accessors:
            if isinstance(each, FunctionType):
                untraced(each)
    return owner
