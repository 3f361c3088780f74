"""The plan of a run from its options: how many processes share the SIPs."""

from pathlib import Path

import pytest

from coordinator.plan import ProgramSpec
from coordinator.report import tables
from coordinator.report.tables import run_description
from kernbench.benches import load_bench, short_runs
from kernbench.command.options import AUTO, SimulationOptions
from kernbench.command.simulation import make_plan
from runtime.core.bench_registry import Bench
from runtime.core.config.config_file import default_file
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


@pytest.fixture
def four_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (short_runs, tables):
        monkeypatch.setattr(module, "usable_cores", lambda: 4)


def default_program(name: str, **changed: int) -> ProgramSpec:
    bench = load_bench(name)
    assert isinstance(bench, Bench)
    flags = {flag.name: flag.default for flag in bench.flags} | changed
    return ProgramSpec("bench", name, bench.program, flags)


@pytest.mark.usefixtures("four_cores")
@pytest.mark.parametrize(
    ("sips", "program", "topology", "procs"),
    [
        (7, default_program("ccl-allreduce"), None, 1),
        (8, default_program("tp-mlp"), None, 2),
        (100, default_program("ccl-allreduce"), None, 4),
        (7, default_program("ccl-allreduce", max_bytes=1 << 20), None, 4),
        (7, default_program("ccl-allreduce"), default_file("topology.yaml"), 4),
        (7, default_program("qkv-gemm-multi-pe"), None, 4),
    ],
)
def test_a_short_run_has_a_process_for_several_sips_and_the_header_shows_why(
    sips: int, program: ProgramSpec, topology: Path | None, procs: int
) -> None:
    plan = make_plan(SimulationOptions(sips=sips, procs=AUTO, topology=topology), program)
    expected = procs if short_runs.IS_COMPILED else 4
    assert plan.procs == expected
    reason = ": more do not pay in a short run" if expected < 4 else " by cores (4)"
    processes = "1 process" if expected == 1 else f"{expected} processes"
    assert f"in {processes}{reason}, " in run_description(plan)


def test_ranks_of_a_script_have_processes_of_their_own(tmp_path: Path) -> None:
    script = ProgramSpec("script", "a.py", str(tmp_path / "a.py"))
    assert make_plan(SimulationOptions(sips=3, procs=AUTO), script).procs == 3
    with pytest.raises(UsageError, match="--procs 2 with a script: its 3 ranks need 3 processes"):
        make_plan(SimulationOptions(sips=3, procs=2), script)
