"""`kernbench.simulate`: a run in this process is that of the command line."""

from pathlib import Path

import pytest

from examples.own_bench import scale_check
from kernbench import simulate
from runtime.core.config.config_file import default_file
from runtime.core.errors import ConfigError
from tests.support.runs import ROOT, launched


def test_digest_and_times_are_those_of_a_run_in_processes(tmp_path: Path):
    bench = f"{ROOT}/examples/own_bench.py:scale-check"
    run = launched(tmp_path / "run", "--sips", "2", "--bench", bench, "--numel", "64")
    assert run.code == 0, run.err
    here = simulate(lambda rank: scale_check(rank, numel=64), sips=2)
    assert here.digest == run.report["digest"]
    assert here.time_ns == run.report["sim_time_ns"]
    assert [outcome.ok for outcome in here.returned.values()] == [1, 1]
    assert here.counters == {each["rank"]: each["counters"] for each in run.report["ranks"]}


def test_a_topology_is_a_path_or_a_text(tmp_path: Path):
    text = default_file("topology.yaml").read_text().replace("pc_bw_gbs: ", "pc_bw_gbs: 1")
    file = tmp_path / "fast.yaml"
    file.write_text(text)
    by_path = simulate(scale_check, 1, topology=file)
    assert by_path.time_ps == simulate(scale_check, 1, topology=text).time_ps
    assert by_path.time_ps < simulate(scale_check, 1).time_ps


def test_an_error_of_a_file_names_it(tmp_path: Path):
    file = tmp_path / "bad.yaml"
    file.write_text(default_file("topology.yaml").read_text().replace("num_pcs", "num_pc"))
    with pytest.raises(ConfigError, match=r"bad\.yaml.*num_pcs"):
        simulate(scale_check, 1, topology=file)
    with pytest.raises(ConfigError, match="no such file"):
        simulate(scale_check, 1, topology=tmp_path / "none.yaml")
    with pytest.raises(ConfigError, match=r"the text of topology\.yaml"):
        simulate(scale_check, 1, topology=file.read_text())


def test_an_error_of_a_rank_is_raised_here():
    def fails(rank: int) -> None:
        raise ArithmeticError(f"rank {rank}")

    with pytest.raises(ArithmeticError, match="rank 0"):
        simulate(fails, 1)
