"""The relay of the LPs' output."""

import io
import os
import sys

import pytest

from coordinator.launch.relay import Relay


class _Gone(io.StringIO):
    def write(self, text: str) -> int:
        raise BrokenPipeError


def passed_on(output: bytes, errors: bytes = b"") -> None:
    """Relay what a process would have printed before it ended."""
    ends = []
    for text in (output, errors):
        reading, writing = os.pipe()
        os.write(writing, text)
        os.close(writing)
        ends.append(os.fdopen(reading, "rb"))
    Relay(*ends).drain()


def test_output_and_errors_are_relayed_separately_in_whole_lines(
    capsys: pytest.CaptureFixture[str],
):
    passed_on(b"one\ntwo", b"three")
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("one\ntwo\n", "three\n")


def test_bytes_that_are_no_text_are_marked(capsys: pytest.CaptureFixture[str]):
    passed_on(b"\xff!\n")
    assert capsys.readouterr().out == "\N{REPLACEMENT CHARACTER}!\n"


def test_a_rank_continues_when_the_reader_of_its_output_is_gone(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "stdout", _Gone())
    reading, writing = os.pipe()
    errors, closed = os.pipe()
    os.close(closed)
    relay = Relay(os.fdopen(reading, "rb"), os.fdopen(errors, "rb"))
    written = sum(os.write(writing, b"line\n" * 10_000) for _ in range(3))
    os.close(writing)
    relay.drain()
    assert written == 150_000, "more than twice what the pipe holds"
