"""Tensor parallel layers and their benches in real processes: closed forms, one digest."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from kernbench import torch, tp
from tests.support.runs import ROOT, Run, kernbench
from tests.support.topologies import variant_text

pytestmark = [pytest.mark.slow, pytest.mark.multiproc]

SMALL = {
    "tp-mlp": ("--tokens", "8", "--width", "64", "--hidden", "256"),
    "tp-attention-block": ("--tokens", "8", "--width", "64", "--heads", "8"),
    "ipcq-allreduce": ("--elements", "300", "--pes", "2"),
}
CHECKS = {"tp-mlp": 3, "tp-attention-block": 2, "ipcq-allreduce": 2}
ULP = 2.0**-10


def chips(tmp_path: Path) -> str:
    """The path of a topology file with SIPs of two cubes with two PEs."""
    topology = tmp_path / "chips.yaml"
    topology.write_text(
        variant_text(
            sip__cube_mesh={"w": 2, "h": 1},
            cube__pe_layout__pe_per_corner=1,
            cube__pe_layout__corners=["NW", "SE"],
        )
    )
    return str(topology)


def layers(rank: int, directory: str) -> None:
    torch.distributed.init_process_group("ahbm")
    tp.initialize_model_parallel(2)
    column, row = tp.ColumnParallelLinear(32, 64), tp.RowParallelLinear(64, 32)
    column.weight.copy_(0.01 * (rank + 1))
    row.weight.copy_(0.01 * (rank + 1))
    x = torch.full((4, 32), 0.1 * (rank + 1), dtype=torch.float16)
    np.savez(
        Path(directory, f"rank{rank}.npz"),
        column=column(torch.full((4, 32), 0.5, dtype=torch.float16)).numpy(),
        row=row(x).numpy(),
        joined=tp.gather_from_tp_region(x).numpy(),
    )


def test_spawned_ranks_give_the_closed_forms_of_column_and_row_parallel_layers(tmp_path: Path):
    torch.multiprocessing.spawn(layers, args=(str(tmp_path),), nprocs=2)
    for rank in range(2):
        found = np.load(tmp_path / f"rank{rank}.npz")
        np.testing.assert_allclose(found["column"], 0.16 * (rank + 1), rtol=3 * ULP)
        np.testing.assert_allclose(found["row"], 0.032 * (1 + 4), rtol=3 * ULP)
        np.testing.assert_array_equal(
            found["joined"], np.array([[0.1] * 32 + [0.2] * 32] * 4, np.float16)
        )


def bench(where: Path, name: str, sips: int, *words: str) -> Run:
    machine = ("--topology", chips(where.parent), "--sips", str(sips))
    run = kernbench(where, "--bench", name, *machine, *SMALL[name], *words)
    assert run.code == 0, run.err
    label = name.replace("-", "_")
    assert f"{label} (ws={sips}): {CHECKS[name] * sips} OK\n" in run.out
    return run


@pytest.mark.parametrize("name", SMALL)
def test_a_bench_gives_one_digest_for_every_number_of_processes(name: str, tmp_path: Path):
    alone = bench(tmp_path / "alone", name, 4, "--procs", "1").report
    many = bench(tmp_path / "many", name, 4, "--procs", "2").report
    assert (many["digest"], many["sim_time_ns"]) == (alone["digest"], alone["sim_time_ns"])
    assert many["sync"]["messages"] > 0


@pytest.mark.parametrize(
    ("name", "sips"), [("tp-mlp", 8), ("tp-attention-block", 2), ("tp-attention-block", 8)]
)
def test_a_bench_is_right_on_two_and_on_eight_sips(name: str, sips: int, tmp_path: Path):
    run = bench(tmp_path / "run", name, sips, "--procs", "1")
    assert "of bound\n" in run.out


def test_the_bench_of_the_command_line_and_the_spawned_program_are_one_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    report = bench(tmp_path / "bench", "tp-mlp", 2, "--procs", "1").report
    monkeypatch.setenv("KERNBENCH_TOPOLOGY", str(tmp_path / "chips.yaml"))
    monkeypatch.setenv("KERNBENCH_OUT", str(tmp_path / "spawned"))
    words = [sys.executable, "-m", "kernbench.benches.tp_mlp", "--nprocs", "2", *SMALL["tp-mlp"]]
    done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout == "tp_mlp (ws=2): 6 OK\n"
    spawned = json.loads((tmp_path / "spawned" / "run.json").read_text())
    assert (spawned["digest"], spawned["sim_time_ns"]) == (report["digest"], report["sim_time_ns"])


def test_an_independent_replay_confirms_panels_that_share_the_slots_of_a_ring(tmp_path: Path):
    script = tmp_path / "ring.py"
    script.write_text(
        "from kernbench import DPPolicy, torch\n"
        "one = DPPolicy(num_cubes=1, num_pes=1)\n"
        "a = torch.randn(640, 896, dtype=torch.float16)\n"
        "b = torch.randn(896, 256, dtype=torch.float16)\n"
        "torch.matmul(a, b, dp=one)\n"
    )
    machine = ("--topology", chips(tmp_path), "--sips", "1")
    run = kernbench(tmp_path / "run", *machine, "--verify-data", str(script))
    assert run.code == 0, run.err
    assert "every bit equal  OK" in run.out
