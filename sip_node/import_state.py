"""Whether a thread imports a module: that may take minutes, and is no endless loop of a program."""

import sys
from types import FrameType

_IMPORT_SYSTEM = "<frozen importlib._bootstrap>"


def imports_module(thread: int) -> bool:
    """Whether the thread with this identifier executes an import."""
    frames = sys._current_frames()  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - documented
    frame: FrameType | None = frames.get(thread)
    while frame is not None:
        if frame.f_code.co_filename == _IMPORT_SYSTEM:
            return True
        frame = frame.f_back
    return False
