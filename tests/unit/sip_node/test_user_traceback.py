"""A traceback shows the frames of the user, each once, and not those of kernbench."""

import json
from collections.abc import Callable

import pytest

from runtime.core.errors import KernelError, PageFaultError
from runtime.core.program_grid import checked_grid
from runtime.language import mock, tl
from sip_node.user_traceback import error_text, user_traceback


def raised(function: Callable[[], object]) -> BaseException:
    with pytest.raises(BaseException) as caught:  # noqa: PT011 - any error
        function()
    error = caught.value
    # As in a run, without the frame of pytest's call.
    assert error.__traceback__ is not None
    return error.with_traceback(error.__traceback__.tb_next)


def names(text: str) -> list[str]:
    return [line.rpartition(" in ")[2] for line in text.splitlines() if line.startswith("  File")]


def test_a_refusal_of_the_language_shows_the_line_of_the_kernel_and_nothing_below_it():
    def kernel() -> None:
        tl.zeros((2,), tl.float32) + tl.zeros((3,), tl.float32)

    error = raised(lambda: mock.launch(kernel))
    assert isinstance(error, KernelError)
    text = user_traceback(error)
    assert names(text) == ["kernel"]
    assert text.splitlines()[0] == "Traceback (most recent call last):"
    assert text.splitlines()[2] == "    tl.zeros((2,), tl.float32) + tl.zeros((3,), tl.float32)"
    assert len(text.splitlines()) == 3
    assert "do not broadcast" in error_text(error)


def test_an_exception_of_the_kernel_shows_its_frames_from_the_kernel_on():
    def deeper(value: int) -> float:
        return 1 / value

    def kernel() -> None:
        deeper(0)

    text = user_traceback(raised(lambda: mock.launch(kernel)))
    assert names(text) == ["kernel", "deeper"]
    assert "ZeroDivisionError" not in text


def test_of_a_deep_kernel_the_outermost_and_the_two_innermost_frames_are_shown():
    def first() -> None:
        second()

    def second() -> None:
        third()

    def third() -> None:
        fourth()

    def fourth() -> None:
        raise ValueError("deep")

    def kernel() -> None:
        first()

    text = user_traceback(raised(lambda: mock.launch(kernel)))
    assert names(text) == ["kernel", "third", "fourth"]
    assert "  2 more frames of the kernel\n" in text


def test_all_frames_are_shown_on_request():
    def kernel() -> None:
        tl.zeros((2,), tl.float32) + tl.zeros((3,), tl.float32)

    text = user_traceback(raised(lambda: mock.launch(kernel)), full=True)
    assert {"launch", "call_kernel", "kernel"} <= set(names(text))
    assert "The above exception was the direct cause" in text
    assert not text.rstrip().splitlines()[-1].startswith("runtime.core.errors.KernelError")


def test_of_pythons_library_what_the_user_calls_is_shown():
    error = raised(lambda: json.loads("{"))
    assert names(user_traceback(error)) == ["<lambda>", "loads", "decode", "raw_decode"]


def test_an_error_without_frames_of_the_user_shows_all_of_them():
    error = raised(lambda: checked_grid(()))
    assert names(user_traceback(error)) == ["<lambda>"]
    assert error.__traceback__ is not None
    defect = error.with_traceback(error.__traceback__.tb_next)
    assert names(user_traceback(defect)) == ["checked_grid"]


def test_what_preceded_an_error_is_shown_with_its_own_frames():
    def outer() -> None:
        try:
            inner()
        except KeyError as error:
            raise RuntimeError("wrapped") from error

    def inner() -> None:
        raise KeyError("a")

    text = user_traceback(raised(outer))
    assert names(text) == ["outer", "inner", "outer"]
    assert "KeyError: 'a'\n\nThe above exception was the direct cause of the" in text
    assert "RuntimeError: wrapped" not in text


def test_a_syntax_error_shows_its_source():
    error = raised(lambda: compile("a = = 1\n", "user.py", "exec"))
    assert user_traceback(error).endswith('  File "user.py", line 1\n    a = = 1\n        ^\n')


def test_the_text_of_an_error_has_its_notes():
    error = PageFaultError("k", (0, 1, 2), "k.py:3", 0x1000, 4, "no tensor")
    error.add_note("launched at k.py:9")
    assert error_text(error).splitlines()[1:] == ["launched at k.py:9"]
