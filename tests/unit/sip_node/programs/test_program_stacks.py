"""Greenlets that programs use one after the other."""

import gc
import weakref
from contextvars import ContextVar, copy_context

import pytest

from sip_node.chip.completion import Completion
from sip_node.chip.kernel import ProgramDropped
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


def test_programs_that_wait_end_in_the_order_of_their_stacks_and_without_a_result() -> None:
    stacks, ends, calls = ProgramStacks(), list[str](), list[str]()
    waits: dict[str, Completion[None]] = {name: Completion() for name in "abc"}

    def called(name: str) -> Completion[None]:
        calls.append(name)
        return waits[name]

    def main(name: str) -> None:
        try:
            programs[name].wait(called, name)
        finally:
            ends.append(f"{name} ends")
            with pytest.raises(ProgramDropped, match="the run has ended while the program waited"):
                programs[name].wait(called, "of finally")
            ends.append(f"{name} has ended")
            if name == "b":
                raise ValueError(name)

    programs = {name: Program(lambda name=name: main(name), stacks) for name in "abc"}
    for name in "cab":
        programs[name].start()
    stacks.close()
    assert ends == [f"{name} {end}" for name in "abc" for end in ("ends", "has ended")]
    assert calls == ["c", "a", "b"]
    assert not any(program.finished.done for program in programs.values())
    assert all(program.frame is None for program in programs.values())


def test_a_program_that_catches_its_end_has_no_result_and_may_wait_on_after_many() -> None:
    stacks, ends = ProgramStacks(), list[BaseException]()

    def caught(waits: int) -> None:
        for _ in range(waits):
            try:
                programs[waits].wait(Completion[None])
            except BaseException as end:  # noqa: BLE001 - a program of the user may have this
                ends.append(end)

    programs = {waits: Program(lambda waits=waits: caught(waits), stacks) for waits in (1, 9, 1000)}
    for program in programs.values():
        program.start()
    stacks.close()
    assert all(isinstance(end, ProgramDropped) for end in ends)
    assert not any(program.finished.done for program in programs.values())
    assert [program.frame is None for program in programs.values()] == [True, True, False]
