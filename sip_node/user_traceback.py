"""The traceback of an error of a rank program or a kernel: the frames of the user's own code.

The frames of kernbench are hidden, with those of Python's library that it calls: the event loop
above the program, and the language below it. `KERNBENCH_TRACEBACK=full` shows them, and so does an
error that has no other frames, which is a defect of kernbench.
"""

import os
from collections.abc import Iterator
from itertools import takewhile
from types import FrameType
from typing import TYPE_CHECKING

from runtime.core.code.package_check import PACKAGES
from runtime.core.errors import KernelError
from runtime.language.caller import call_kernel

# Loaded where something failed, since no other run needs it.
if TYPE_CHECKING:
    from traceback import StackSummary, TracebackException

_PROGRAMS = ("kernbench.benches.", "kernbench.studies.")
"""Rank programs and kernels of kernbench are shown, as those of the user."""
_LIBRARY = os.path.dirname(os.__file__) + os.sep  # noqa: PTH120 - a prefix of a text
_INSTALLED = os.path.join(_LIBRARY, "site-packages")  # noqa: PTH118
_KERNEL_FRAMES = 4
"""Frames of a kernel which are shown: with more, the outermost and the two innermost."""
_CAUSED = "\nThe above exception was the direct cause of the following exception:\n\n"
_MEANWHILE = "\nDuring handling of the above exception, another exception occurred:\n\n"


def user_traceback(error: BaseException, *, full: bool = False) -> str:
    """The lines that Python prints before the line of an error itself: what preceded it, and the
    frames of the user, from the outermost to the innermost; with `full`, all frames.
    """
    from traceback import TracebackException

    whole = TracebackException.from_exception(error)
    if full:
        lines = "".join(whole.format())
        return lines.removesuffix("".join(whole.format_exception_only()))
    return "".join((*_preceding(error), *_frames(error), *_source(whole)))


def error_text(error: BaseException) -> str:
    """The text of an error and, each on a line of its own, its notes."""
    return "\n".join((str(error), *getattr(error, "__notes__", ())))


def _preceding(error: BaseException) -> Iterator[str]:
    """The errors that led to this one, each with its frames."""
    # What a kernel may not do is refused with an exception of Python, with the same text.
    if isinstance(error, KernelError):
        return
    context = None if error.__suppress_context__ else error.__context__
    before = error.__cause__ or context
    if before is not None:
        from traceback import format_exception_only

        yield from _preceding(before)
        yield from _frames(before)
        yield from format_exception_only(before)
        yield _CAUSED if error.__cause__ is not None else _MEANWHILE


def _frames(error: BaseException) -> Iterator[str]:
    shown, in_kernel = _shown(error)
    if not shown:
        return
    yield "Traceback (most recent call last):\n"
    folded = len(shown) - _KERNEL_FRAMES + 1 if in_kernel else 0
    if folded > 1:
        yield from _stack(shown[:1]).format()
        yield f"  {folded} more frames of the kernel\n"
        shown = shown[folded + 1 :]
    yield from _stack(shown).format()


def _shown(error: BaseException) -> tuple[list[tuple[FrameType, int]], bool]:
    """The frames to show with their lines, all if none is of the user; whether they are those of a
    kernel.
    """
    from traceback import walk_tb

    frames = list(walk_tb(error.__traceback__))
    entries = [
        place for place, (frame, _) in enumerate(frames) if frame.f_code is call_kernel.__code__
    ]
    shown: list[tuple[FrameType, int]] = []
    hidden = True
    for frame, line in frames[entries[-1] if entries else 0 :]:
        hidden = _is_hidden(frame, below_hidden=hidden)
        if not hidden:
            shown.append((frame, line))
    return shown or frames, bool(entries)


def _is_hidden(frame: FrameType, *, below_hidden: bool) -> bool:
    module: str = frame.f_globals.get("__name__", "")
    file = frame.f_code.co_filename
    if module.partition(".")[0] in PACKAGES:
        return not f"{module}.".startswith(_PROGRAMS)
    is_library = file.startswith(_LIBRARY) and not file.startswith(_INSTALLED)
    return file.startswith("<frozen ") or (is_library and below_hidden)


def _stack(frames: list[tuple[FrameType, int]]) -> "StackSummary":
    from traceback import FrameSummary, StackSummary

    # Without the columns of the error, which Python marks by a line of their own.
    return StackSummary.from_list(
        [
            FrameSummary(frame.f_code.co_filename, line, frame.f_code.co_name)
            for frame, line in frames
        ]
    )


def _source(error: "TracebackException") -> Iterator[str]:
    """The lines of the source that a `SyntaxError` shows before its text."""
    return takewhile(lambda line: line.startswith("  "), error.format_exception_only())
