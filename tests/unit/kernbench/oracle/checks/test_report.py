"""The tables of `validate` are printed while it runs."""

import io
import sys
from collections.abc import Iterator

import pytest

from kernbench.oracle.checks.check import Check
from kernbench.oracle.checks.report import print_tables


class _Pipe(io.StringIO):
    """A stream whose reader has what was flushed."""

    read_so_far = ""

    def flush(self) -> None:
        self.read_so_far = self.getvalue()


def test_the_table_of_a_group_is_in_the_pipe_when_the_next_group_begins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pipe, seen = _Pipe(), list[bool]()
    monkeypatch.setattr(sys, "stdout", pipe)

    def checks() -> Iterator[Check]:
        for number in ("a.1", "a.2", "b.1", "b.2"):
            seen.append("a.2" in pipe.read_so_far)
            yield Check(number, "", "", expected=1, measured=1, unit="ns")

    print_tables(checks())
    # The first check of the next group shows that the group before it is complete.
    assert seen == [False, False, False, True]
    assert "b.2" in pipe.read_so_far
