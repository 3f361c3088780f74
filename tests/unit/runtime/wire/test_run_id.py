"""The id of a run crosses by a pipe, which both ends close."""

import os
import pty

import pytest

from runtime.wire.run_id import read_run_id, run_id_pipe


def is_open(file: int) -> bool:
    try:
        os.fstat(file)
    except OSError:
        return False
    return True


def test_the_id_in_the_pipe_is_read_and_both_ends_are_closed():
    with run_id_pipe("0123abcd") as file:
        copy = os.dup(file)
        assert read_run_id(copy) == "0123abcd"
        assert not is_open(copy)
    assert not is_open(file)


def test_the_line_of_the_id_is_read_and_what_follows_is_left_for_the_program():
    reading, writing = os.pipe()
    os.write(writing, b"0123\nthe input of the program\n")
    os.close(writing)
    copy = os.dup(reading)
    assert read_run_id(copy) == "0123"
    assert os.read(reading, 100) == b"the input of the program\n"
    os.close(reading)


@pytest.mark.parametrize("content", [b"", b"\n"])
def test_a_pipe_without_an_id_gives_an_empty_one(content: bytes):
    reading, writing = os.pipe()
    os.write(writing, content)
    os.close(writing)
    assert read_run_id(reading) == ""


def test_a_line_without_an_end_is_not_read_beyond_the_longest_id():
    reading, writing = os.pipe()
    os.write(writing, b"x" * 4096)
    assert read_run_id(reading) == "x" * 256
    os.close(writing)


def test_a_terminal_is_read_with_a_prompt(monkeypatch: pytest.MonkeyPatch):
    prompts = list[str]()

    def typed(prompt: str, _stream: object) -> str:
        prompts.append(prompt)
        return "0123"

    monkeypatch.setattr("getpass.getpass", typed)
    control, terminal = pty.openpty()
    assert read_run_id(terminal) == "0123"
    assert prompts == ["id of the run: "]
    os.close(control)
    os.close(terminal)
