"""Greenlets for programs, each used again by the next program when one has ended.

A new greenlet maps memory for the frames of its program: 20 us, where the switch to one that has
them takes 2. A launch on all PEs of a SIP starts 128 programs.
"""

from collections.abc import Callable
from contextvars import Context

from greenlet import GreenletExit, getcurrent, greenlet

_MOST_EXITS = 100
"""Exits raised in one program: a program that catches more waits on."""


class ProgramStacks:
    """Greenlets with the event loop as their parent; those that run no program at the moment are
    idle. Once it is `closed`, no program has a result any more.
    """

    def __init__(self) -> None:
        self._loop = getcurrent()
        # By the time at which they were made.
        self._stacks: list[greenlet] = []
        self._idle: list[greenlet] = []
        self.closed = False

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
        self._stacks.append(new)
        return new

    def give_back(self, stack: greenlet) -> None:
        """The function of a greenlet has returned."""
        # A context refers to a PE, and so to all that a program has used.
        stack.gr_context = None
        self._idle.append(stack)

    def close(self) -> None:
        """End every program that waits, at its wait. For the event loop, after its last event.

        The collector does not see the frames of a greenlet that waits: with what they refer to,
        which is the chip, they would live as long as the process. The `finally` blocks of a program
        run. A wait in them ends at once, in the same way, and its call is not made.
        """
        self.closed = True
        for stack in self._stacks:
            for _ in range(_MOST_EXITS):
                if stack.dead:
                    break
                stack.throw(GreenletExit)


def _serve(loop: greenlet) -> None:
    """Call one function after the other, each passed by a switch."""
    while True:
        function: Callable[[], None] = loop.switch(None)
        function()
        # Dropped before the wait: a function refers to its program and to tensors that it captures.
        del function
