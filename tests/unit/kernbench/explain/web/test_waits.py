"""The waits of programs and at links are sums of the tables."""

from pathlib import Path

import pytest

from kernbench.explain.records import RecordedRun, open_run
from kernbench.explain.web.waits import link_waits, program_waits
from tests.support.web_runs import LINK, write_page_run


@pytest.fixture(name="records")
def _records(tmp_path: Path) -> RecordedRun:
    return open_run(write_page_run(tmp_path / "run"))


def test_waits_are_by_statement_the_longest_first(records: RecordedRun) -> None:
    waits = program_waits(records)
    assert waits["line"] == ["k.py:4", "k.py:3", "k.py:5"]
    assert waits["waited_ps"] == [2000, 1900, 1000]
    assert link_waits(records) == {
        "sip": [0],
        "link": [LINK],
        "operation": ["pe_dma load"],
        "count": [1],
        "waited_ps": [300],
    }
