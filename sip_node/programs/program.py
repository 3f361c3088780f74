"""Programs that block on simulated time: rank programs and kernels, each a greenlet.

User code calls plain functions that block (`tl.load`, `torch.ahbm.synchronize`), while the event
loop is one thread. So every program is a greenlet (a stack of its own, switched by hand):

    event loop          program
    start() ----------> user code ... wait(call)
    call() <-----------------'        sleeps
    other events
    completion -------> returns the value, user code goes on

A command that begins later is the same in two parts: the program sleeps at once, with `sleep`, and
an event makes the call for it, with `call`.

A program never runs a component itself: it gives the call to the loop, which makes the call, and
resumes the program from the event that completes it. So programs are entered from the loop only,
never from one another, and the stack of the loop never grows with their number.
"""

from collections.abc import Callable
from contextvars import Context, copy_context
from types import FrameType
from typing import Any, TypeVar

from greenlet import GreenletExit, getcurrent

from runtime.core.program_clock import ProgramClock
from sip_node.chip.completion import AnyCompletion, Completion, Continuation
from sip_node.chip.kernel import ProgramDropped
from sip_node.programs.program_stacks import ProgramStacks

_T = TypeVar("_T")
Call = tuple[Callable[..., Completion[Any]], tuple[object, ...]]


class Program(Continuation):
    """A greenlet, one of `stacks`, that runs `main()` with the context variables of `context`.

    `finished` completes with the value that `main` returns, or fails with what it raises. `clock`
    measures how long `main` computes. It continues with the result of what it waits for.
    """

    def __init__(
        self,
        main: Callable[[], object],
        stacks: ProgramStacks,
        context: Context | None = None,
        clock: ProgramClock | None = None,
    ) -> None:
        self._main: Callable[[], object] | None = main
        self._stacks, self._clock = stacks, clock
        # Not `context or ...`: a context without variables is false.
        self._greenlet = stacks.take(copy_context() if context is None else context)
        self._to_program, self._to_loop = self._greenlet.switch, getcurrent().switch
        self.finished: Completion[object] = Completion()

    @property
    def frame(self) -> FrameType | None:
        """The innermost frame of a program that waits."""
        return None if self.finished.done else self._greenlet.gr_frame

    def start(self) -> None:
        """Run until the program first waits. For the event loop only."""
        self._enter(self._body, self._to_program)

    def call(self, start: Callable[..., Completion[Any]], args: tuple[object, ...]) -> None:
        """Call `start(*args)` for the program, which sleeps, and let it go on with the result.

        For the event loop only.
        """
        completion = _called(start, args)
        if completion.done:
            self.resume(completion)
        else:
            completion.then(self)

    def wait(self, start: Callable[..., Completion[_T]], *args: object) -> _T:
        """Let the loop call `start(*args)`; sleep until its completion, return its value.

        For the program only.
        """
        assert getcurrent() is self._greenlet, "only the program itself can wait"
        try:
            return self._to_loop((start, args))
        except GreenletExit as end:
            raise ProgramDropped from end

    def sleep(self) -> Any:
        """Sleep until an event makes a call for the program; return the value of the call.

        For the program only.
        """
        assert getcurrent() is self._greenlet, "only the program itself can sleep"
        try:
            return self._to_loop(None)
        except GreenletExit as end:
            raise ProgramDropped from end

    def _body(self) -> None:
        # Kernels refer to their program. In a reference cycle, a kernel that has ended would never
        # be deleted, and neither would a tensor that it captures.
        main, self._main = self._main, None
        assert main is not None
        try:
            value = main()
        except ProgramDropped:
            # A program that waits is deleted at the end of a run.
            raise
        # SystemExit as well: it would end the process without a report.
        except BaseException as error:  # noqa: BLE001 - the result of a program may be any exception
            self.finished.fail(error)
        else:
            self.finished.complete(value)

    def resume(self, done: Any) -> None:
        """Let the program, which waits, go on with the result of its call."""
        if done.error is None:
            self._enter(done.result, self._to_program)
        else:
            self._enter(done.error, self._greenlet.throw)

    def _enter(self, value: Any, switch: Callable[[Any], Call | None]) -> None:
        """Switch to the program and make its calls, until one does not complete at once."""
        while True:
            if self._clock is not None:
                self._clock.enter()
            call = switch(value)
            if self._clock is not None:
                self._clock.leave()
            # A program that sleeps passes no call, nor does one that has ended.
            if call is None:
                if self.finished.done:
                    self._stacks.give_back(self._greenlet)
                return
            start, args = call
            completion = _called(start, args)
            if not completion.done:
                completion.then(self)
                return
            # Complete already: go on at once, without an event.
            if completion.error is None:
                switch, value = self._to_program, completion.result
            else:
                switch, value = self._greenlet.throw, completion.error


def _called(start: Callable[..., Completion[Any]], args: tuple[object, ...]) -> AnyCompletion:
    try:
        return start(*args)
    except Exception as error:  # noqa: BLE001 - raised again where the program called
        failed = AnyCompletion()
        failed.fail(error)
        return failed
