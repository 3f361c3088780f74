"""One result for every number of processes, every hash seed and every delivery delay."""

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from runtime.core.run_tables import TABLES
from runtime.torch.multiprocessing import spawn
from tests.support.collectives import groups_beside_kernels, outcome_of_groups
from tests.support.runs import ROOT, Run, kernbench, launched
from tests.support.topologies import variant_text

pytestmark = [pytest.mark.multiproc, pytest.mark.slow]

SMALL = ("--min-bytes", "256", "--max-bytes", "256")


def chips(directory: Path, count: int, cubes: tuple[int, int] = (1, 1), **changes: object) -> str:
    """A topology file with few cubes a SIP and two PEs a cube, so that six SIPs take seconds."""
    small: dict[str, object] = {
        "cube__pe_layout__pe_per_corner": 1,
        "cube__pe_layout__corners": ["NW", "SE"],
    }
    mesh: dict[str, object] = {
        "sip__cube_mesh": {"w": cubes[0], "h": cubes[1]},
        "system__sips__count": count,
    }
    path = directory / "chips.yaml"
    path.write_text(variant_text(**small | mesh | changes))
    return str(path)


def tables_of(directory: Path) -> dict[str, str]:
    """The tables of a run's records, by file, as hashes of their bytes."""
    files = (directory / "records").iterdir()
    return {each.name: sha256(each.read_bytes()).hexdigest() for each in sorted(files)}


def result_of(run: Run) -> tuple[object, ...]:
    assert run.code == 0, run.err
    report = run.report
    assert report["passed"] is True
    return (
        tables_of(run.directory),
        report["digest"],
        report["sim_time_ns"],
        report["events"],
        [rank["digest"] for rank in report["ranks"]],
    )


def test_any_number_of_processes_hash_seed_and_delivery_delay_give_one_digest(
    tmp_path: Path,
) -> None:
    words = ("--topology", chips(tmp_path, 4, (2, 2), system__sips__topology="torus_2d"), *SMALL)
    alone = launched(tmp_path / "alone", *words, "--procs", "1")
    assert "intercube_allreduce (ws=4): 16 OK\n" in alone.out
    two = launched(tmp_path / "two", *words, "--procs", "2", hash_seed=1)
    late = launched(
        tmp_path / "late", *words, "--jitter-ms", "4", "--jitter-seed", "7", hash_seed=2
    )
    far = kernbench(tmp_path / "far", *words, "--delay-us", "20.5")
    near = kernbench(tmp_path / "near", *words, "--delay-us", "0")
    assert (
        result_of(two) == result_of(late) == result_of(far) == result_of(near) == result_of(alone)
    )
    assert not any(two.report["between_hosts"].values())
    for run, delay_us in ((far, 20.5), (near, 0)):
        assert run.report["delay_us"] == delay_us
        # All LPs wait for each other, and nothing goes over the board.
        traffic, sync = run.report["between_hosts"], run.report["sync"]
        assert 0 < traffic["trips"] <= traffic["frames"]
        assert traffic["frames"] >= sync["null_messages"] + traffic["silence_frames"]
    names = {table.file(sip) for table in TABLES for sip in range(4)}
    assert set(tables_of(alone.directory)) == names
    assert late.report["sync"]["messages"] > 0


def test_messages_that_other_sips_forward_give_one_result_too(tmp_path: Path) -> None:
    """No ring follows the links of an open line of four SIPs: the two in the middle forward."""
    line = {"system__sips__topology": "mesh_2d_no_wrap", "system__sips__w": 4, "system__sips__h": 1}
    alone, many = in_one_and_in_all(tmp_path, chips(tmp_path, 4, **line))
    assert alone == many


def test_a_switch_gives_one_result_too(tmp_path: Path) -> None:
    alone, many = in_one_and_in_all(tmp_path, chips(tmp_path, 3, system__sips__fabric="switch"))
    assert alone == many


def in_one_and_in_all(directory: Path, topology: str) -> tuple[object, object]:
    """The results in one process, and in one process for each SIP."""
    words = ("--topology", topology, "--algorithm", "ring", *SMALL)
    alone = kernbench(directory / "alone", *words, "--procs", "1")
    return result_of(alone), result_of(kernbench(directory / "many", *words))


def _groups(rank: int) -> None:
    # Along the links of the 2 x 2 mesh; in the order of ranks, every other step is a diagonal.
    right = outcome_of_groups(rank, 40, ring=(0, 1, 3, 2))
    np.testing.assert_array_equal(groups_beside_kernels(rank, 40), right)


def test_every_algorithm_in_groups_that_overlap_with_kernels_gives_one_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One run of all algorithms, on a 2 x 2 mesh, where SIPs forward between diagonal ranks."""
    topology = chips(
        tmp_path, 4, system__sips__topology="mesh_2d_no_wrap", cube__pe_layout__corners=["NW"]
    )
    monkeypatch.setenv("KERNBENCH_TOPOLOGY", topology)
    results: list[object] = []
    for procs in (1, 2, 4):
        monkeypatch.setenv("KERNBENCH_OUT", str(tmp_path / str(procs)))
        spawn(_groups, nprocs=4, procs=procs)
        digest = json.loads((tmp_path / str(procs) / "run.json").read_text())["digest"]
        results.append((digest, tables_of(tmp_path / str(procs))))
    assert results == results[:1] * 3


def _reversed_keys(content: dict[str, Any]) -> dict[str, Any]:
    return {
        key: _reversed_keys(content[key]) if isinstance(content[key], dict) else content[key]
        for key in reversed(content)
    }


def test_neither_the_order_of_keys_in_the_files_nor_a_run_without_data_changes_the_times(
    tmp_path: Path,
) -> None:
    for name in ("topology.yaml", "ccl.yaml"):
        content = yaml.safe_load((ROOT / name).read_text())
        (tmp_path / name).write_text(yaml.safe_dump(_reversed_keys(content), sort_keys=False))
    files = ("--topology", str(tmp_path / "topology.yaml"), "--ccl", str(tmp_path / "ccl.yaml"))
    plain = kernbench(tmp_path / "plain", "--sips", "2", *SMALL)
    assert "intercube_allreduce (ws=2): 32 OK\n" in plain.out
    shuffled = kernbench(tmp_path / "shuffled", "--sips", "2", *files, *SMALL)
    assert result_of(shuffled) == result_of(plain)
    without = kernbench(tmp_path / "none", "--sips", "2", "--no-data", *SMALL)
    assert without.code == 0, without.err
    assert without.report["sim_time_ns"] == plain.report["sim_time_ns"]
    assert "32 NOT CHECKED" in without.out


def test_a_single_sip_is_a_run_too(tmp_path: Path) -> None:
    run = kernbench(tmp_path / "run", "--topology", chips(tmp_path, 1, (2, 2)), *SMALL)
    assert run.code == 0, run.err
    assert "intercube_allreduce (ws=1): 4 OK\n" in run.out


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
