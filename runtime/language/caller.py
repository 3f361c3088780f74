"""Whose line it was: the place in a kernel's own source that asked the language for something."""

import os
from collections.abc import Callable, Iterator, Sequence
from inspect import currentframe
from itertools import pairwise
from types import FrameType, TracebackType

from runtime.core.coordinates import PeCoordinates
from runtime.core.errors import KernelError

_INSIDE = ("runtime.language.", "sip_node.", "contextlib.")
_VOCABULARY = ("runtime.", "contextlib.")


def kernel_line(frame: FrameType | None = None) -> str:
    """`file:line` of the innermost frame that is neither the language's nor the chip's, by default from the caller's on.

    Only the kernel's own greenlet has the kernel's frames; `frame` is where it stands, for others who ask.
    """
    frame = frame or currentframe()
    while frame is not None and _inside(frame):
        frame = frame.f_back
    return "an unknown line" if frame is None else _place(frame, frame.f_lineno)


def program_line() -> str:
    """`file:line` of the innermost frame of a rank's program: the one that called what asks."""
    frame = currentframe()
    while frame is not None and _inside(frame, _VOCABULARY):
        frame = frame.f_back
    return "an unknown line" if frame is None else _place(frame, frame.f_lineno)


def call_kernel(
    name: str, place: PeCoordinates, kernel: Callable[..., object], arguments: Sequence[object]
) -> object:
    """Run `kernel(*arguments)`. What the language refuses with a Python exception becomes a `KernelError` with its line.

    An exception of the kernel's own passes through as it is.
    """
    try:
        return kernel(*arguments)
    except (TypeError, ValueError, LookupError) as error:
        line = _refused_at(error.__traceback__)
        if line is None:
            raise
        raise KernelError(name, place, line, str(error)) from error


def _refused_at(trace: TracebackType | None) -> str | None:
    """The last line of the kernel before it entered the language; None where the exception is not the language's."""
    frames = list(_frames(trace))
    while frames and _inside(frames[0][0]):
        frames.pop(0)
    for (frame, line), (below, _) in pairwise(frames):
        if _inside(below):
            return _place(frame, line)
    return None


def _frames(trace: TracebackType | None) -> Iterator[tuple[FrameType, int]]:
    while trace is not None:
        yield trace.tb_frame, trace.tb_lineno
        trace = trace.tb_next


def _inside(frame: FrameType, packages: tuple[str, ...] = _INSIDE) -> bool:
    return f"{frame.f_globals.get('__name__', '')}.".startswith(packages)


def _place(frame: FrameType, line: int) -> str:
    path = os.path.relpath(frame.f_code.co_filename)
    return f"{frame.f_code.co_filename if path.startswith('..') else path}:{line}"
