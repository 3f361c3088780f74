"""The mark of kernbench: one result for every number of processes, hash seed and delivery delay."""

from pathlib import Path

import pytest
import yaml

from tests.support.runs import ROOT, Run, kernbench
from tests.support.topologies import variant_text

pytestmark = [pytest.mark.multiproc, pytest.mark.slow]

SMALL = ("--min-bytes", "256", "--max-bytes", "256")


def shape(directory: Path, topology: str, count: int) -> str:
    """A topology file with four cubes a SIP, so that nine SIPs take seconds."""
    path = directory / f"{topology}-{count}.yaml"
    path.write_text(variant_text(sip__cube_mesh={"w": 2, "h": 2}, system__sips__topology=topology, system__sips__count=count))
    return str(path)


def result_of(run: Run) -> tuple[object, ...]:
    assert run.code == 0, run.err
    report = run.report
    assert report["passed"] is True
    return report["digest"], report["sim_time_ns"], report["events"], [rank["digest"] for rank in report["ranks"]]


def test_any_number_of_processes_hash_seed_and_delivery_delay_give_one_digest(tmp_path: Path) -> None:
    alone = result_of(kernbench(tmp_path / "alone", "--sips", "4", "--procs", "1", *SMALL))
    assert result_of(kernbench(tmp_path / "two", "--sips", "4", "--procs", "2", *SMALL, hash_seed=1)) == alone
    assert result_of(kernbench(tmp_path / "four", "--sips", "4", *SMALL, hash_seed=2)) == alone
    delayed = kernbench(tmp_path / "late", "--sips", "4", "--jitter-ms", "4", "--jitter-seed", "7", *SMALL)
    assert result_of(delayed) == alone
    assert delayed.report["sync"]["messages"] > 0


@pytest.mark.parametrize("sips", [1, 2, 3, 8])
def test_rings_of_sips_sum_on_every_cube(tmp_path: Path, sips: int) -> None:
    run = kernbench(tmp_path / "run", "--sips", str(sips), *SMALL)
    assert run.code == 0, run.err
    assert f"intercube_allreduce (ws={sips}): {16 * sips} OK\n" in run.out


@pytest.mark.parametrize("topology", ["torus_2d", "mesh_2d_no_wrap"])
@pytest.mark.parametrize("sips", [4, 9])
def test_grids_of_sips_sum_on_every_cube_in_one_process_and_in_many(tmp_path: Path, topology: str, sips: int) -> None:
    file = shape(tmp_path, topology, sips)
    many = kernbench(tmp_path / "many", "--sips", str(sips), "--topology", file, *SMALL)
    assert f"intercube_allreduce (ws={sips}): {4 * sips} OK\n" in many.out
    alone = kernbench(tmp_path / "alone", "--sips", str(sips), "--topology", file, "--procs", "1", *SMALL)
    assert result_of(many) == result_of(alone)


def test_a_switch_gives_one_result_too(tmp_path: Path) -> None:
    file = tmp_path / "switch.yaml"
    file.write_text(variant_text(sip__cube_mesh={"w": 2, "h": 2}, system__sips__fabric="switch"))
    runs = [
        kernbench(
            tmp_path / f"p{procs}", "--sips", "3", "--topology", str(file), "--procs", procs, "--algorithm", "ring", *SMALL
        )
        for procs in ("1", "2", "3")
    ]
    assert len({result_of(run)[0] for run in runs}) == 1


def test_messages_that_other_sips_forward_give_one_result_too(tmp_path: Path) -> None:
    """On a 3 x 3 mesh the ring of ranks joins SIPs that are not adjacent: those in between forward."""
    file = shape(tmp_path, "mesh_2d_no_wrap", 9)
    words = ("--sips", "9", "--topology", file, "--algorithm", "ring", *SMALL)
    assert result_of(kernbench(tmp_path / "a", *words, "--procs", "1")) == result_of(kernbench(tmp_path / "b", *words))


def test_without_data_the_times_are_the_same(tmp_path: Path) -> None:
    with_data = kernbench(tmp_path / "data", "--sips", "2", *SMALL)
    without = kernbench(tmp_path / "none", "--sips", "2", "--no-data", *SMALL)
    assert without.report["sim_time_ns"] == with_data.report["sim_time_ns"]
    assert "32 NOT CHECKED" in without.out


def test_the_order_of_keys_in_the_files_does_not_matter(tmp_path: Path) -> None:
    def reversed_keys(value: object) -> object:
        return {key: reversed_keys(value[key]) for key in reversed(value)} if isinstance(value, dict) else value

    for name in ("topology.yaml", "ccl.yaml"):
        content = yaml.safe_load((ROOT / name).read_text())
        (tmp_path / name).write_text(yaml.safe_dump(reversed_keys(content), sort_keys=False))
    files = ("--topology", str(tmp_path / "topology.yaml"), "--ccl", str(tmp_path / "ccl.yaml"))
    shuffled = kernbench(tmp_path / "shuffled", "--sips", "2", *files, *SMALL)
    assert result_of(shuffled) == result_of(kernbench(tmp_path / "plain", "--sips", "2", *SMALL))


def test_a_script_runs_as_torchrun_would_run_it(tmp_path: Path) -> None:
    script = tmp_path / "hello.py"
    script.write_text(
        "import os, sys\n"
        "from runtime import torch\n"
        "dist = torch.distributed\n"
        "dist.init_process_group('ahbm')\n"
        "rank = int(os.environ['RANK'])\n"
        "assert (rank, dist.get_world_size()) == (dist.get_rank(), int(os.environ['WORLD_SIZE']))\n"
        "t = torch.full((1000,), rank + 1.0)\n"
        "dist.all_reduce(t)\n"
        "assert (t.numpy() == 6).all()\n"
        "print('rank', rank, sys.argv[1:], __name__)\n"
    )
    run = kernbench(tmp_path / "run", "--sips", "3", str(script), "--epochs", "2")
    assert run.code == 0, run.err
    for rank in range(3):
        assert f"rank {rank} ['--epochs', '2'] __main__" in run.out
