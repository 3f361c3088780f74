"""Errors that PyTorch raises in C++, in the greenlet of a rank.

PyTorch takes a backtrace of the C++ stack with each error. Below the first frame of a greenlet the
stack has remains of other greenlets, at which the backtrace faults, and the process ends by
SIGSEGV. The C++ part replaces the function that takes it. Without that part, ctypes calls the same
function of PyTorch, with an object `std::function` as the library libstdc++ lays it out.
"""

import ctypes
import sys
from pathlib import Path
from typing import Any

import torch

_SETTER = (
    "_ZN3c1020SetStackTraceFetcherESt8functionIFNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE"
    "EvEE"
)
"""`c10::SetStackTraceFetcher(std::function<std::string()>)`."""
_TEXT = "_ZN3c1013getThreadNameB5cxx11Ev"
"""`std::string c10::getThreadName()`: the text in place of a backtrace, which errors show only with
TORCH_SHOW_CPP_STACKTRACES.
"""


class _Function(ctypes.Structure):
    """`std::function` of libstdc++: what it holds, the function that copies and destroys that, and
    the function to call.
    """

    _fields_ = (
        ("held", ctypes.c_void_p * 2),
        ("copy_or_destroy", ctypes.c_void_p),
        ("call", ctypes.c_void_p),
    )


def omit_error_traces() -> None:
    """Let errors of C++ have no backtrace. Only Linux has this library and needs it."""
    if sys.platform != "linux":
        return
    c10 = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libc10.so"))
    # It holds nothing, so any function that changes nothing copies and destroys that.
    nothing = ctypes.CDLL(None).getpid
    function = _Function((None, None), _address(nothing), _address(getattr(c10, _TEXT)))
    setter = getattr(c10, _SETTER)
    setter.argtypes, setter.restype = (ctypes.POINTER(_Function),), None
    setter(ctypes.byref(function))


def _address(function: Any) -> int | None:
    return ctypes.cast(function, ctypes.c_void_p).value
