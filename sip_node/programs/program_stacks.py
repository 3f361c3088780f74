"""Greenlets for programs, each used again by the next program when one has ended.

A new greenlet maps memory for the frames of its program: 20 us, where the switch to one that has
them takes 2. A launch on all PEs of a SIP starts 128 programs.
"""

from collections.abc import Callable
from contextvars import Context

from greenlet import getcurrent, greenlet


class ProgramStacks:
    """The greenlets that run no program at the moment. All have the event loop as their parent."""

    def __init__(self) -> None:
        self._loop = getcurrent()
        self._idle: list[greenlet] = []

    def take(self, context: Context) -> greenlet:
        """A greenlet with the variables of `context`; the first switch to it passes a function.

        It calls the function, and switches to the loop with None when that has returned.
        """
        taken = self._idle.pop() if self._idle else self._new()
        taken.gr_context = context
        return taken

    def _new(self) -> greenlet:
        new = greenlet(_serve, parent=self._loop)
        # Up to its first wait, since a greenlet keeps the arguments of its first switch.
        new.switch(self._loop)
        return new

    def give_back(self, stack: greenlet) -> None:
        """The function of a greenlet has returned."""
        # A context refers to a PE, and so to all that a program has used.
        stack.gr_context = None
        self._idle.append(stack)


def _serve(loop: greenlet) -> None:
    """Call one function after the other, each passed by a switch."""
    while True:
        function: Callable[[], None] = loop.switch(None)
        function()
        # Dropped before the wait: a function refers to its program and to tensors that it captures.
        del function
