"""Programs that block: driven by hand, as the event loop drives them."""

from collections.abc import Callable
from contextvars import Context, ContextVar, copy_context
from typing import Any

import pytest
from greenlet import GreenletExit, getcurrent, greenlet

from sip_node.chip.completion import Completion, completed
from sip_node.chip.kernel import ProgramDropped
from sip_node.pdes.engine import Engine
from sip_node.programs.program import Program
from sip_node.programs.program_stacks import ProgramStacks


class Story:
    """A program that may wait for completions by number."""

    def __init__(self, main: Callable[["Story"], Any]) -> None:
        self.waits = [Completion[Any]() for _ in range(4)]
        self.program = Program(lambda: main(self), ProgramStacks())
        self.values: list[Any] = []

    def wait(self, index: int) -> Any:
        return self.program.wait(lambda: self.waits[index])

    def start(self) -> "Story":
        self.program.start()
        return self


def test_a_program_returns_what_its_main_returns() -> None:
    finished = Story(lambda story: 42).start().program.finished
    assert (finished.done, finished.value) == (True, 42)


def test_a_program_waits_until_its_completion_and_gets_its_value() -> None:
    story = Story(lambda story: story.wait(0) + story.wait(1)).start()
    assert not story.program.finished.done
    story.waits[0].complete(1)
    assert not story.program.finished.done
    story.waits[1].complete(10)
    assert story.program.finished.value == 11


def test_what_is_done_already_does_not_block() -> None:
    story = Story(
        lambda story: [story.program.wait(completed, number) for number in range(1000)]
    ).start()
    assert story.program.finished.value == list(range(1000))


def test_a_failed_completion_is_raised_where_the_program_waits() -> None:
    def main(story: Story) -> str:
        try:
            story.wait(0)
        except LookupError as error:
            return f"caught {error}"
        return "not raised"

    story = Story(main).start()
    story.waits[0].fail(LookupError("nothing there"))
    assert story.program.finished.value == "caught nothing there"


def test_a_call_that_raises_raises_in_the_program_and_not_in_the_loop() -> None:
    def broken() -> Completion[None]:
        raise ValueError("cannot start")

    def main(story: Story) -> str:
        with pytest.raises(ValueError, match="cannot start"):
            story.program.wait(broken)
        return "went on"

    assert Story(main).start().program.finished.value == "went on"


def asleep(call: Callable[[Story], Completion[Any]]) -> tuple[Story, Engine]:
    """A program that sleeps while an event at 5 ps makes a call, and returns its value."""
    engine = Engine()

    def main(story: Story) -> tuple[Any, int]:
        story.program.call_at(engine, 5, (call, (story,)))
        return story.program.sleep(), engine.now_ps

    return Story(main).start(), engine


def test_a_program_sleeps_until_an_event_has_made_its_call() -> None:
    story, engine = asleep(lambda _: completed("there"))
    engine.run_before(5)
    assert not story.program.finished.done
    engine.run_before(6)
    assert story.program.finished.value == ("there", 5)


def test_a_program_sleeps_until_the_call_of_an_event_completes() -> None:
    story, engine = asleep(lambda story: story.waits[0])
    engine.run_before(6)
    assert not story.program.finished.done
    story.waits[0].complete("late")
    assert story.program.finished.value == ("late", 5)


def test_a_call_of_an_event_that_raises_raises_in_the_program_that_sleeps() -> None:
    def broken(_: Story) -> Completion[None]:
        raise ValueError("cannot start")

    story, engine = asleep(broken)
    engine.run_before(6)
    assert isinstance(story.program.finished.error, ValueError)


def test_what_a_program_raises_is_its_result() -> None:
    def main(story: Story) -> None:
        story.wait(0)
        raise KeyError("its own fault")

    story = Story(main).start()
    story.waits[0].complete(None)
    assert isinstance(story.program.finished.error, KeyError)


def test_a_greenlet_exit_that_a_program_raises_is_its_result() -> None:
    def main(_: Story) -> None:
        raise GreenletExit("mine")

    error = Story(main).start().program.finished.error
    assert isinstance(error, GreenletExit)
    assert str(error) == "mine"


def test_a_program_that_waits_when_it_is_deleted_ends_without_a_result() -> None:
    ends, stacks = list[type[BaseException]](), list[greenlet]()

    def main(story: Story) -> None:
        stacks.append(getcurrent())
        try:
            story.wait(0)
        except BaseException as error:
            ends.append(type(error))
            raise

    story = Story(main).start()
    # What a greenlet does when it is deleted.
    stacks[0].throw()
    assert ends == [ProgramDropped]
    assert not story.program.finished.done


def test_the_loop_goes_on_while_a_program_waits() -> None:
    stories = [Story(lambda story: story.values.append(story.wait(0))).start() for _ in range(3)]
    for index in (1, 2, 0):
        stories[index].waits[0].complete(index)
    assert [story.values for story in stories] == [[0], [1], [2]]


def test_calls_are_made_by_the_loop_and_not_by_the_program() -> None:
    loop, callers = getcurrent(), list[Any]()

    def call() -> Completion[None]:
        callers.append(getcurrent())
        return completed(None)

    Story(lambda story: story.program.wait(call)).start()
    assert callers == [loop]


def test_only_the_program_itself_can_wait() -> None:
    story = Story(lambda story: story.wait(0)).start()
    with pytest.raises(AssertionError, match="only the program itself can wait"):
        story.wait(1)


def test_a_program_sees_the_context_it_was_given() -> None:
    running: ContextVar[str] = ContextVar("running")
    seen: list[str] = []
    for name in ("first", "second"):
        context = copy_context()
        context.run(running.set, name)
        Program(lambda: seen.append(running.get()), ProgramStacks(), context).start()
    assert seen == ["first", "second"]
    assert running.get("unset") == "unset"


def test_a_program_keeps_a_context_that_is_empty_when_it_is_made() -> None:
    running: ContextVar[str] = ContextVar("running")
    context, seen = Context(), list[str]()
    program = Program(lambda: seen.append(running.get()), ProgramStacks(), context)
    context.run(running.set, "set later")
    program.start()
    assert seen == ["set later"]
