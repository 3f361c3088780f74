"""The counter of full slots, with messages that are received in place."""

from pathlib import Path

import pytest

from kernbench.explain.records import open_run
from kernbench.explain.trace.counters import Counter, counters
from kernbench.explain.trace.selection import select
from tests.support.run_tables import Row, op, program, step, tables, write_run

PE = {"cube": 0, "pe": 1}


def full_slots(directory: Path, steps: list[Row], error: str | None = None) -> list[Counter]:
    """The counter of a PE at which messages arrive at 10, 20 and 30 ps; the first is copied out."""
    ops = [
        *(op("pe_ipcq", "arrival", 0, at, address=64 * at, **PE) for at in (10, 20, 30)),
        op("pe_dma", "ipcq_recv", 12, 15, read_address=640, **PE),
    ]
    programs = [program(0, 0, 100), program(3, 5, 90, **PE)]
    run = write_run(directory, [tables(ops, programs, steps)], 100, error=error)
    found = counters(open_run(run), select(None, None, 1, 100))
    return [each for each in found if each.path[-1] == "full slots"]


def test_a_message_in_place_is_in_its_slot_until_its_release(tmp_path: Path):
    steps = [step(3, "release", 35, 40), step(3, "release", 60, 65)]
    [found] = full_slots(tmp_path / "run", steps)
    assert found.path == ("SIP 0", "cube 0", "PE 1", "full slots")
    assert found.times_ps.tolist() == [10, 15, 20, 30, 40, 65]
    assert found.values.tolist() == [1, 0, 1, 2, 1, 0]


def test_a_pe_whose_kernel_ended_with_messages_in_place_has_no_counter(tmp_path: Path):
    assert full_slots(tmp_path / "run", [step(3, "release", 35, 40)]) == []


@pytest.mark.parametrize("releases", [0, 1])
def test_a_run_that_failed_shows_the_slots_that_stayed_full(tmp_path: Path, releases: int):
    steps = [step(3, "release", 35, 40)] * releases
    [found] = full_slots(tmp_path / "run", steps, error="deadlock")
    assert found.values[-1] == 2 - releases
