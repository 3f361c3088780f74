"""The plan of a point, and the hash of what all points have in common."""

import pickle
from dataclasses import replace
from pathlib import Path

import pytest

from coordinator.plan import ProgramSpec, load_config
from kernbench.points.task import OtherCodeError
from kernbench.sweep.measurement import SweepMeasurement, program_sources
from kernbench.sweep.parameters import (
    Parameter,
    ParameterKind,
    argument_parameter,
    key_parameter,
    sips_parameter,
)
from kernbench.sweep.points import sweep_points
from runtime.core.errors import ConfigError
from tests.unit.kernbench.sweep.test_keys import TEXTS

BENCH = ProgramSpec("bench", "mine", "mine:mine", {"size": 3, "name": "x"})
SIZE = Parameter("--size", ParameterKind.FLAG, "size", (4, 5))


def of(*swept: Parameter, program: ProgramSpec = BENCH, **rest: object) -> SweepMeasurement:
    return replace(SweepMeasurement(program, TEXTS, swept), **rest)


def test_a_point_sets_keys_flags_and_sips():
    parameters = (key_parameter(TEXTS, "ring.n_slots=4,8"), SIZE, sips_parameter("2,4"))
    measurement = of(*parameters, fixed=(key_parameter(TEXTS, "ucie.bw_gbs=99"),))
    plan = measurement.plan(sweep_points(parameters, is_zip=False)[-1])
    assert plan.config.ccl.resolve("ring").n_slots == 8
    assert plan.config.topology.ucie.bw_gbs == 99
    assert plan.sips == 4
    assert plan.program.arguments == {"size": 5, "name": "x"}


def test_a_bench_has_one_process_and_a_script_one_for_each_rank(tmp_path: Path):
    point = sweep_points((sips_parameter("2,4"),), is_zip=False)[1]
    assert of(sips_parameter("2,4")).plan(point).procs == 1
    script = ProgramSpec("script", "s.py", str(tmp_path / "s.py"))
    assert of(sips_parameter("2,4"), program=script).plan(point).procs == 4


def test_a_script_gets_its_fixed_arguments_first(tmp_path: Path):
    script = ProgramSpec("script", "s.py", str(tmp_path / "s.py"), argv=("train", "-v"))
    swept = argument_parameter("--size=1,2", None)
    fixed = argument_parameter("--fast", None)
    measurement = of(swept, program=script, fixed=(fixed,))
    argv = measurement.plan(sweep_points((swept,), is_zip=False)[1]).program.argv
    assert argv == ("train", "-v", "--fast", "--size=2")


def test_a_point_has_records_and_no_op_log():
    plan = of(SIZE).plan(sweep_points((SIZE,), is_zip=False)[0])
    assert (plan.job.records, plan.job.trace) == (True, False)


def test_a_point_has_the_hash_of_a_run_with_a_changed_file(tmp_path: Path):
    bandwidth = key_parameter(TEXTS, "ucie.bw_gbs=64,96")
    plan = of(bandwidth).plan(sweep_points((bandwidth,), is_zip=False)[0])
    changed = tmp_path / "topology.yaml"
    changed.write_text(TEXTS.topology_text.replace("  bw_gbs: 128 ", "  bw_gbs: 64 ", 1))
    assert plan.config.hash == load_config(changed, None, None).hash


def test_values_that_do_not_fit_together_are_refused_with_their_keys():
    keys = (key_parameter(TEXTS, "pe.tcm_mb=4,16"), key_parameter(TEXTS, "tile_buffers=6,8"))
    measurement = of(*keys)
    with pytest.raises(ConfigError) as refused:
        measurement.plan(sweep_points(keys, is_zip=False)[0])
    begin = "topology.yaml with pe.tcm_mb=4 tile_buffers=6: pe.tcm_mb: 4 MiB; "
    assert str(refused.value).startswith(begin)
    assert "\n" not in str(refused.value)


def test_a_measurement_travels_to_a_worker():
    measurement = of(SIZE)
    assert pickle.loads(pickle.dumps(measurement)) == measurement


def test_the_configuration_covers_program_files_fixed_values_and_data(tmp_path: Path):
    script = tmp_path / "s.py"
    script.write_text("import beside\n")
    (tmp_path / "beside.py").write_text("a = 1\n")
    program = ProgramSpec("script", "s.py", str(script))
    first = replace(of(SIZE, program=program), sources=program_sources(program))
    slower = replace(
        TEXTS, topology_text=TEXTS.topology_text.replace("ns_per_mm: 0.01", "ns_per_mm: 0.02")
    )
    others = [
        replace(first, program=replace(program, argv=("x",))),
        replace(first, program=BENCH),
        replace(first, texts=slower),
        replace(first, fixed=(key_parameter(TEXTS, "ucie.bw_gbs=99"),)),
        replace(first, data=False),
    ]
    hashes = [each.configuration() for each in (first, *others)]
    (tmp_path / "beside.py").write_text("a = 2\n")
    hashes.append(replace(first, sources=program_sources(program)).configuration())
    assert len(set(hashes)) == len(hashes)


def test_a_worker_with_other_files_of_the_program_is_refused(tmp_path: Path):
    script, beside = tmp_path / "s.py", tmp_path / "beside.py"
    script.write_text("import beside\n")
    beside.write_text("a = 1\n")
    program = ProgramSpec("script", "s.py", str(script))
    measurement = replace(of(SIZE, program=program), sources=program_sources(program))
    [point, *_] = sweep_points((SIZE,), is_zip=False)
    beside.write_text("a = 2\n")
    with pytest.raises(OtherCodeError, match=f"its file {beside} has the hash"):
        measurement.measure(point)
    beside.unlink()
    with pytest.raises(OtherCodeError, match=f"it has no file {beside}"):
        measurement.measure(point)


def test_other_points_and_comments_are_the_same_configuration():
    commented = replace(TEXTS, topology_text=f"# note\n{TEXTS.topology_text}")
    assert of(SIZE).configuration() == of(sips_parameter("1,2"), texts=commented).configuration()
