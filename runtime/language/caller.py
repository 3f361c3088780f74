"""Source locations for messages: the line of a kernel or of a rank's program that called the
language.
"""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from inspect import currentframe
from itertools import pairwise
from types import FrameType, TracebackType

from runtime.core.code.package_check import ROOT
from runtime.core.coordinates import PeCoordinates
from runtime.core.errors import KernelError
from runtime.core.program_grid import GridPoint
from runtime.language.running import Scope, current_scope

_INSIDE = (
    *("runtime.language.", "sip_node.", "contextlib.", "copy."),
    *("kernbench.explain.mock.", "kernbench.triton.", "triton."),
)
"""Packages between a kernel and an error that it causes; `contextlib` is the frame of `with
tl.scratch()`, `copy` that of a copied value, `mock` that of a launch which is checked, and the last
two are those of a Triton kernel.
"""
UNKNOWN_LINE = "an unknown line"
LANGUAGE_ERRORS = (TypeError, ValueError, LookupError, AttributeError)
"""The types that the language raises. A kernel may catch them, since they are ordinary exceptions
until they leave it.
"""
_VOCABULARY = (
    "runtime.",
    "sip_node.",
    "contextlib.",
    "kernbench.torch_backend.",
    "kernbench.triton.",
    "triton.",
    "torch.",
    "typing_extensions.",
)
"""Packages between a rank's program and its device; the last five where PyTorch or Triton calls."""


def kernel_line(frame: FrameType | None = None) -> str:
    """`file:line` of the innermost frame of a kernel, searched from `frame` outwards, by default
    from the caller's frame.

    The frames of a kernel are on the stack of its own greenlet only; a caller on another greenlet
    passes the kernel's frame.
    """
    # The stack of a greenlet ends at its first frame, so the search stays inside the kernel.
    frame = frame or currentframe()
    while frame is not None and is_language(frame):
        frame = frame.f_back
    return UNKNOWN_LINE if frame is None else location(frame)


def is_language(frame: FrameType) -> bool:
    """Whether a frame is of what is between a kernel and the chip, and not of the kernel."""
    return _is_in(frame.f_globals.get("__name__", ""), _INSIDE)


def location(frame: FrameType) -> str:
    """`file:line` which a frame executes."""
    return _location(frame, frame.f_lineno)


def program_line() -> str:
    """`file:line` of the innermost frame of a rank's program."""
    return program_call()[0]


def program_call() -> tuple[str, str]:
    """`file:line` of the innermost frame of a rank's program, and the name of the function that it
    calls there.
    """
    frame, called = currentframe(), ""
    # Code that PyTorch generates is in no module.
    while frame is not None and ("__name__" not in frame.f_globals or _inside(frame, _VOCABULARY)):
        frame, called = frame.f_back, frame.f_code.co_name
    return (UNKNOWN_LINE if frame is None else location(frame)), called


def call_kernel(
    name: str,
    coordinates: PeCoordinates,
    kernel: Callable[..., object],
    arguments: Sequence[object],
    program: GridPoint | None = None,
) -> object:
    """Run `kernel(*arguments)`; a Python exception raised by the language becomes a `KernelError`
    with the kernel's line, and its program of a grid.

    An exception that the kernel itself raises passes through unchanged.
    """
    scope = current_scope.set(Scope())
    try:
        return kernel(*arguments)
    except LANGUAGE_ERRORS as error:
        line, problem = _refused_line(error.__traceback__), str(error)
        if line is None:
            wrong_call = _wrong_call(error)
            if wrong_call is None:
                raise
            line, problem = wrong_call
        refused = KernelError(name, coordinates, line, problem, program)
        raise refused.with_traceback(error.__traceback__) from error
    finally:
        current_scope.reset(scope)


def _refused_line(trace: TracebackType | None) -> str | None:
    """The last line of the kernel before it entered the language; None if the language did not
    raise.
    """
    frames = list(_frames(trace))
    # The traceback begins with frames of this module and of the chip, which called the kernel.
    while frames and _inside(frames[0][0]):
        frames.pop(0)
    for (frame, line), (below, _) in pairwise(frames):
        if _inside(below):
            return _location(frame, line)
    return None


def _wrong_call(error: BaseException) -> tuple[str, str] | None:
    """The line of a call that Python itself refused, since a function of the language has no such
    arguments, and what is wrong with it.
    """
    # Loaded where a kernel fails; `tl` imports this module.
    from runtime.language import tl
    from runtime.language.other_languages import wrong_call

    *_, (frame, line) = _frames(error.__traceback__)
    problem = wrong_call(error, frame, tl)
    return None if problem is None else (_location(frame, line), problem)


def _frames(trace: TracebackType | None) -> Iterator[tuple[FrameType, int]]:
    while trace is not None:
        yield trace.tb_frame, trace.tb_lineno
        trace = trace.tb_next


def _inside(frame: FrameType, packages: tuple[str, ...] = _INSIDE) -> bool:
    return _is_in(frame.f_globals.get("__name__", ""), packages)


# A kernel takes its line at each receive: the search takes a fifth of the time with the names
# of modules and files looked up once.
@cache
def _is_in(module: str, packages: tuple[str, ...]) -> bool:
    return f"{module}.".startswith(packages)


def _location(frame: FrameType, line: int) -> str:
    return f"{_shown(frame.f_code.co_filename)}:{line}"


@cache
def _shown(file: str) -> str:
    # Relative to a folder of the import path, such as that of the script: shorter, and the same on
    # every machine. Not to the working directory, on which no byte of a record may depend.
    if file.startswith("<"):
        return file
    file = os.path.abspath(file)  # noqa: PTH100 - `Path` would be made anew for each file
    folders = [str(ROOT), *sorted(map(os.path.abspath, sys.path), key=len, reverse=True)]
    for folder in folders:
        prefix = folder.rstrip(os.sep) + os.sep
        if file.startswith(prefix):
            return file.removeprefix(prefix)
    return file
