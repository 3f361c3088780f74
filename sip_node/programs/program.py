"""Programs that block on simulated time: rank programs and kernels, each a greenlet beside the event loop.

A program never runs a component itself. It hands a call to the loop and sleeps; the loop makes the call, and resumes the
program from the event that completes it. So programs are entered only from the loop, never from one another.
"""

from collections.abc import Callable
from contextvars import Context, copy_context
from types import FrameType
from typing import Any, TypeVar

from greenlet import getcurrent, greenlet

from sip_node.chip.completion import Completion

_T = TypeVar("_T")
Call = tuple[Callable[..., Completion[Any]], tuple[object, ...]]


class Program:
    """A greenlet that runs `main()`; `finished` completes with what it returns or fails with what it raises."""

    def __init__(self, main: Callable[[], object], context: Context | None = None) -> None:
        self._main = main
        self._greenlet = greenlet(self._body, parent=getcurrent())
        self._greenlet.gr_context = context or copy_context()
        self.finished = Completion[object]()

    @property
    def frame(self) -> FrameType | None:
        """The innermost frame of a program that waits."""
        return self._greenlet.gr_frame

    def start(self) -> None:
        """Run until the program first waits. To be called by the event loop."""
        self._run(None)

    def wait(self, start: Callable[..., Completion[_T]], *args: object) -> _T:
        """Called by the program: let the loop call `start(*args)`, sleep until its completion, return its value."""
        assert getcurrent() is self._greenlet, "only the program itself can wait"
        parent = self._greenlet.parent
        assert parent is not None
        return parent.switch((start, args))

    def _body(self, _first: None) -> None:
        try:
            value = self._main()
        except Exception as error:  # noqa: BLE001 - whatever user code raises is the result of its program
            self.finished.fail(error)
        else:
            self.finished.complete(value)

    def _resume(self, completion: Completion[Any]) -> None:
        self._run(completion)

    def _run(self, completion: Completion[Any] | None) -> None:
        while True:
            call: Call | None
            if completion is not None and completion.error is not None:
                call = self._greenlet.throw(completion.error)
            else:
                call = self._greenlet.switch(None if completion is None else completion.value)
            if self._greenlet.dead or call is None:
                return
            start, args = call
            try:
                completion = start(*args)
            except Exception as error:  # noqa: BLE001 - it belongs to the program that made the call
                completion = Completion[Any]()
                completion.fail(error)
            if not completion.done:
                completion.then(self._resume)
                return
