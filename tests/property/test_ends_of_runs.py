"""However the programs of a run end, its time is that of the last thing it did, and `why` explains
all of it.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench.explain.why.breakdown import rank_time
from kernbench.explain.why.path import critical_path
from kernbench.explain.why.summary import summary_lines
from runtime.core.run_tables import COMMANDS, OPS, PROGRAMS
from tests.support.run_ends import ProgramEndError, RunEnd, drawn_end, ended_run, records_of


def problems(end: RunEnd) -> list[str]:
    """Faults in the time and the explanation of a run."""
    try:
        world = ended_run(end)
    except ProgramEndError:
        return [] if end.raises else ["a program raised what it has not"]
    if end.raises:
        return ["a program that raises has ended well"]
    records, found = records_of(world), []
    latest_ps = max(
        int(records.table(table, sip)["end_ps"].max(initial=0))
        for table in (OPS, PROGRAMS, COMMANDS)
        for sip in records.sips
    )
    if latest_ps != world.time_ps:
        found.append(f"the run ends at {latest_ps}, its report has {world.time_ps}")
    lines = list(summary_lines(records, verbose=True))
    if bool(lines) != bool(world.time_ps):
        found.append(f"{len(lines)} lines explain {world.time_ps} ps")
    path = critical_path(records)
    path_ps = sum(piece.length_ps for piece in path.pieces)
    if path_ps != world.time_ps or path.unexplained_ps:
        found.append(f"the path takes {path_ps}, of it unexplained {path.unexplained_ps}")
    for sip in records.sips:
        parts_ps = sum(rank_time(records, sip).parts_ps.values())
        if parts_ps != world.time_ps:
            found.append(f"the parts of rank {sip} take {parts_ps} of {world.time_ps}")
    return found


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 200, 20))
def test_the_time_of_a_run_is_explained_however_its_programs_end(first: int) -> None:
    ends = {seed: drawn_end(seed) for seed in range(first, first + 20)}
    found = {(seed, end): problems(end) for seed, end in ends.items()}
    assert {end: each for end, each in found.items() if each} == {}


@pytest.mark.parametrize("last", [("event",), ("synchronize", "event"), ("record",)])
def test_a_run_lasts_until_its_last_event_is_answered(last: tuple[str, ...]) -> None:
    end = RunEnd(1, (("write", *last),))
    assert problems(end) == []


@pytest.mark.nightly
@given(st.integers(1000, 1_000_000))
def test_the_time_of_many_runs_is_explained_however_their_programs_end(seed: int) -> None:
    assert problems(drawn_end(seed)) == []
