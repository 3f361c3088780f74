"""The plan of a run from its options: how many processes share the SIPs."""

from pathlib import Path

import pytest

from coordinator.plan import ProgramSpec
from coordinator.report.tables import run_description
from kernbench.command.options import AUTO, SimulationOptions
from kernbench.command.simulation import make_plan
from runtime.core.cores import usable_cores
from runtime.core.errors import UsageError

BENCH = ProgramSpec("bench", "mine", "mine:run")


def test_every_sip_has_its_process_unless_a_number_is_given() -> None:
    assert make_plan(SimulationOptions(sips=4), BENCH).procs == 4
    assert make_plan(SimulationOptions(sips=4, procs=3), BENCH).procs == 3


def test_processes_by_cores_are_at_most_the_cores_and_the_header_shows_them() -> None:
    cores = usable_cores()
    plan = make_plan(SimulationOptions(sips=100, procs=AUTO), BENCH)
    assert plan.procs == min(cores, 100)
    assert f"by cores ({cores})" in run_description(plan)
    assert make_plan(SimulationOptions(sips=1, procs=AUTO), BENCH).procs == 1


def test_ranks_of_a_script_have_processes_of_their_own(tmp_path: Path) -> None:
    script = ProgramSpec("script", "a.py", str(tmp_path / "a.py"))
    assert make_plan(SimulationOptions(sips=3, procs=AUTO), script).procs == 3
    with pytest.raises(UsageError, match="--procs 2 with a script: its 3 ranks need 3 processes"):
        make_plan(SimulationOptions(sips=3, procs=2), script)
