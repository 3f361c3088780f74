"""Programs that block on simulated time: rank programs and kernels.

User code calls plain functions that block (`tl.load`, `torch.ahbm.synchronize`), while the event
loop is one thread. So every program is a greenlet (a stack of its own, switched by hand):

    event loop          program
    start() ----------> user code ... wait(call)
    call() <-----------------'        sleeps
    other events
    completion -------> returns the value, user code goes on

A command that begins later is the same in two parts: the program sleeps at once, with `sleep`, and
an event makes the call for it, with `call_at`.

A command of a kernel is a generator, its `Steps`: it yields a call to wait for, or None to sleep.
The greenlet of a kernel carries them out, blocked at each. A program that consists of nothing but
commands needs no stack of its own: `StepsProgram` goes on with the generator itself.

A program never runs a component itself: it gives the call to the loop, which makes the call, and
resumes the program from the event that completes it. So programs are entered from the loop only,
never from one another, and the stack of the loop never grows with their number.
"""

from collections.abc import Callable, Generator
from contextvars import Context, copy_context
from types import FrameType
from typing import Any, TypeVar

from greenlet import GreenletExit, getcurrent

from runtime.core.program_clock import ProgramClock
from sip_node.chip.completion import AnyCompletion, Completion, Continuation
from sip_node.chip.kernel import ProgramDropped
from sip_node.kernel import events
from sip_node.pdes.engine import Engine
from sip_node.programs.program_stacks import ProgramStacks

_T = TypeVar("_T")
Call = tuple[Callable[..., Completion[Any]], tuple[object, ...]]
Steps = Generator[Call | None, Any, _T]
"""The waits of a command: calls of the event loop, or None while an event is to make one. The
generator is sent the result of each, and returns its own.
"""


class AnyProgram(Continuation):
    """A program that continues with the result of what it waits for.

    `finished` completes with the value that the program returns, or fails with what it raises.
    """

    def __init__(self, clock: ProgramClock | None = None) -> None:
        self._clock = clock
        # The call that an event is to make.
        self._issued: Call | None = None
        self.finished: Completion[object] = Completion()

    @property
    def frame(self) -> FrameType | None:
        """The innermost frame of a program that waits; None where it has no code of its own."""
        return None

    def start(self) -> None:
        """Run until the program first waits. For the event loop only."""
        raise NotImplementedError(type(self).__name__)

    def call_at(self, engine: Engine, time_ps: int, call: Call) -> None:
        """Make a call at a time for the program, which sleeps until it goes on with the result."""
        self._issued = call
        events.resume_at(engine, time_ps, self)

    def resume(self, done: Any) -> None:
        """Let the program, which waits, go on with the result of its call; make the call first at
        the event that is to make it.
        """
        if done is None:
            self._make_call()
        else:
            self._enter(done.result, done.error)

    def _make_call(self) -> None:
        """The event for a call has come: make it, and go on once it has completed."""
        call, self._issued = self._issued, None
        assert call is not None, "an event makes a call that the program has given"
        start, args = call
        completion = _called(start, args)
        if completion.done:
            self._enter(completion.result, completion.error)
        else:
            completion.then(self)

    def _enter(self, value: Any, error: BaseException | None) -> None:
        """Run the program with a value, or an error, and make its calls, until one does not
        complete at once.
        """
        while True:
            if self._clock is not None:
                self._clock.enter()
            call = self._send(value) if error is None else self._throw(error)
            if self._clock is not None:
                self._clock.leave()
            # A program that sleeps passes no call, nor does one that has ended.
            if call is None:
                if self.finished.done:
                    self._left()
                return
            start, args = call
            completion = _called(start, args)
            if not completion.done:
                completion.then(self)
                return
            # Complete already: go on at once, without an event.
            value, error = completion.result, completion.error

    def _send(self, value: Any) -> Call | None:
        """Run the program, which goes on with a value, until its next wait; return its call."""
        raise NotImplementedError(type(self).__name__)

    def _throw(self, error: BaseException) -> Call | None:
        """The same for a program that goes on with an error."""
        raise NotImplementedError(type(self).__name__)

    def _left(self) -> None:
        """The program has ended."""


class StepsProgram(AnyProgram):
    """A program that consists of `steps`, which `main` makes with the program."""

    def __init__(self, main: Callable[["StepsProgram"], Steps[None]]) -> None:
        super().__init__()
        self._main: Callable[[StepsProgram], Steps[None]] | None = main
        self._steps: Steps[None] | None = None

    def start(self) -> None:
        """Run until the program first waits. For the event loop only."""
        main, self._main = self._main, None
        assert main is not None, "a program starts once"
        self._steps = main(self)
        self._enter(None, None)

    def _send(self, value: Any) -> Call | None:
        steps = self._steps
        assert steps is not None, "the program has started"
        try:
            return steps.send(value)
        except StopIteration as end:
            self._steps = None
            self.finished.complete(end.value)
        except Exception as error:  # noqa: BLE001 - the result of a program may be any exception
            self._steps = None
            self.finished.fail(error)
        return None

    def _throw(self, error: BaseException) -> Call | None:
        steps = self._steps
        assert steps is not None, "the program has started"
        try:
            return steps.throw(error)
        except StopIteration as end:
            self._steps = None
            self.finished.complete(end.value)
        except Exception as raised:  # noqa: BLE001 - see above
            self._steps = None
            self.finished.fail(raised)
        return None


class Program(AnyProgram):
    """A greenlet, one of `stacks`, that runs `main()` with the context variables of `context`.

    `clock` measures how long `main` computes.
    """

    def __init__(
        self,
        main: Callable[[], object],
        stacks: ProgramStacks,
        context: Context | None = None,
        clock: ProgramClock | None = None,
    ) -> None:
        super().__init__(clock)
        self._main: Callable[[], object] | None = main
        self._stacks = stacks
        # Not `context or ...`: a context without variables is false.
        self._greenlet = stacks.take(copy_context() if context is None else context)
        self._to_program, self._to_loop = self._greenlet.switch, getcurrent().switch

    @property
    def frame(self) -> FrameType | None:
        """The innermost frame of a program that waits."""
        return None if self.finished.done else self._greenlet.gr_frame

    def start(self) -> None:
        """Run until the program first waits. For the event loop only."""
        self._enter(self._body, None)

    def carry_out(self, steps: Steps[_T]) -> _T:
        """Block at each wait of a command; return its result. For the program only."""
        try:
            call = next(steps)
            while True:
                try:
                    value = self.sleep() if call is None else self.wait(call[0], *call[1])
                except Exception as error:  # noqa: BLE001 - raised where the command waits
                    call = steps.throw(error)
                else:
                    call = steps.send(value)
        except StopIteration as end:
            return end.value

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
            # After the run there is no result: what goes on with it would simulate on.
            if not self._stacks.closed:
                self.finished.fail(error)
        else:
            if not self._stacks.closed:
                self.finished.complete(value)

    def _send(self, value: Any) -> Call | None:
        return self._to_program(value)

    def _throw(self, error: BaseException) -> Call | None:
        return self._greenlet.throw(error)

    def _left(self) -> None:
        self._stacks.give_back(self._greenlet)


def _called(start: Callable[..., Completion[Any]], args: tuple[object, ...]) -> AnyCompletion:
    try:
        return start(*args)
    except Exception as error:  # noqa: BLE001 - raised again where the program called
        failed = AnyCompletion()
        failed.fail(error)
        return failed
