"""Greenlets that programs use one after the other."""

import gc
import weakref
from contextvars import ContextVar, copy_context

from sip_node.chip.completion import Completion
from sip_node.programs.program import Program
from sip_node.programs.program_stacks import ProgramStacks


class Captured:
    """Object that a kernel captures, such as a tensor."""


def test_a_program_runs_on_the_stack_of_one_that_has_ended() -> None:
    stacks, seen = ProgramStacks(), list[object]()
    running: ContextVar[int] = ContextVar("running")

    def main(number: int) -> None:
        context = copy_context()
        context.run(running.set, number)
        program = Program(lambda: seen.append((number, running.get())), stacks, context)
        program.start()
        assert program.finished.done
        assert program.frame is None

    first = stacks.take(copy_context())
    first.switch(lambda: None)
    stacks.give_back(first)
    for number in range(3):
        main(number)
    assert seen == [(0, 0), (1, 1), (2, 2)]
    assert stacks.take(copy_context()) is first


def test_programs_that_wait_have_stacks_of_their_own_and_one_that_fails_gives_its_back() -> None:
    stacks, order = ProgramStacks(), list[str]()
    waits: dict[str, Completion[None]] = {name: Completion() for name in "abc"}

    def main(name: str) -> None:
        programs[name].wait(lambda: waits[name])
        order.append(name)
        raise ValueError(name)

    programs = {name: Program(lambda name=name: main(name), stacks) for name in "abc"}
    for program in programs.values():
        program.start()
    for name in "bca":
        waits[name].complete(None)
    assert order == ["b", "c", "a"]
    assert [str(program.finished.error) for program in programs.values()] == ["a", "b", "c"]
    assert len({id(stacks.take(copy_context())) for _ in range(3)}) == 3


def test_a_stack_keeps_nothing_of_the_program_that_has_ended() -> None:
    stacks, captured = ProgramStacks(), Captured()
    alive = weakref.ref(captured)
    gc.disable()
    try:
        Program(lambda captured=captured: captured, stacks).start()
        del captured
        # Without a collection: reference counting alone deletes it.
        assert alive() is None
    finally:
        gc.enable()
