"""Ranks start and end as those of PyTorch: `torch.multiprocessing.spawn`, and scripts as with
`torchrun`.
"""

import os
import pickle
import re
import signal
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import pytest

from coordinator.watch.failure import CollectiveTimeout
from runtime import torch
from runtime.core.config.config_file import default_file
from runtime.torch.multiprocessing import ProcessExitedException, ProcessRaisedException, spawn
from tests.support.runs import ROOT, kernbench
from tests.support.topologies import variant_text

pytestmark = [pytest.mark.slow, pytest.mark.multiproc]
dist = torch.distributed

LIMIT_S = 20.0
VARIABLES = {
    "WORLD_SIZE": "2",
    "LOCAL_WORLD_SIZE": "2",
    "GROUP_RANK": "0",
    "GROUP_WORLD_SIZE": "1",
    "ROLE_NAME": "default",
    "ROLE_WORLD_SIZE": "2",
    "MASTER_ADDR": "127.0.0.1",
    "MASTER_PORT": "29500",
}


class UnpicklableError(Exception):
    def __init__(self, rank: int) -> None:
        super().__init__(f"no luck on rank {rank}")
        self.function = lambda: rank


def _exit_with_0_if_the_variables_are_right(rank: int) -> None:
    for name in ("RANK", "LOCAL_RANK", "ROLE_RANK"):
        assert os.environ[name] == str(rank)
    assert VARIABLES.items() <= os.environ.items()
    dist.init_process_group("ahbm", "env://", world_size=int(os.environ["WORLD_SIZE"]), rank=rank)
    dist.barrier()
    sys.exit(0)


def _exit_with_3_on_rank_1(rank: int) -> None:
    if rank == 1:
        sys.exit(3)


def _raise_on_rank_1(rank: int) -> None:
    if rank == 1:
        raise UnpicklableError(rank)


def _spawn_again(rank: int) -> None:
    spawn(_spawn_again, nprocs=1)


def _wait_for(rank: int, file: str) -> None:
    while not Path(file).exists():
        time.sleep(0.01)


def _compute_on_rank_0(rank: int, limit_s: float, busy_s: float) -> None:
    dist.init_process_group("ahbm", timeout=timedelta(seconds=limit_s))
    x = torch.ones(8)
    dist.all_reduce(x)
    x.numpy()
    end_s = time.monotonic() + busy_s * (rank == 0)
    while time.monotonic() < end_s:
        pass
    dist.all_reduce(x)


@pytest.fixture(autouse=True)
def one_cube(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The path of a topology file whose SIPs start fast, which spawned runs use."""
    topology = tmp_path / "small.yaml"
    topology.write_text(variant_text(sip__cube_mesh={"w": 1, "h": 1}))
    monkeypatch.setenv("KERNBENCH_TOPOLOGY", str(topology))
    return str(topology)


def test_ranks_that_share_a_process_have_their_own_variables_and_exit_0_is_success():
    assert spawn(_exit_with_0_if_the_variables_are_right, nprocs=2, procs=1) is None
    assert "RANK" not in os.environ


def test_a_rank_that_exits_with_a_code_is_pytorchs_exception():
    with pytest.raises(ProcessExitedException) as caught:
        spawn(_exit_with_3_on_rank_1, nprocs=2, procs=1)
    error = caught.value
    assert str(error) == "process 1 terminated with exit code 3"
    assert (error.error_index, error.exit_code, error.signal_name) == (1, 3, None)


def test_an_exception_that_cannot_be_pickled_arrives_as_its_traceback():
    with pytest.raises(ProcessRaisedException) as caught:
        spawn(_raise_on_rank_1, nprocs=2, procs=1)
    start = "\n\n-- Process 1 terminated with the following error:\nTraceback (most recent call "
    assert str(caught.value).startswith(start)
    assert str(caught.value).endswith("UnpicklableError: no luck on rank 1\n")


def test_a_rank_that_spawns_is_a_clear_error():
    with pytest.raises(ProcessRaisedException, match="ranks cannot spawn ranks"):
        spawn(_spawn_again, nprocs=1)


def test_a_function_that_cannot_be_sent_is_a_pickling_error_with_a_hint():
    with pytest.raises(pickle.PicklingError, match="Define fn at the top level of a module"):
        spawn(lambda rank: None, nprocs=2)


def test_a_context_has_running_processes_and_join_has_a_time_limit(tmp_path: Path):
    file = tmp_path / "go"
    context = spawn(_wait_for, (str(file),), nprocs=2, join=False)
    assert context is not None
    assert [process.pid for process in context.processes] == context.pids()
    assert all(process.is_alive() for process in context.processes)
    assert not context.join(0.01)
    file.touch()
    assert context.join(LIMIT_S, grace_period=1.0)
    assert [process.exitcode for process in context.processes] == [0, 0]


PROGRAM = """
import signal, sys, time
from runtime import torch

def f(rank, what):
    if what == "raise":
        raise KeyError("missing")
    print("up", flush=True)
    while what in ("forever", "interrupted"):
        time.sleep(0.05)

if __name__ == "__main__":
    what, daemon = sys.argv[1], len(sys.argv) > 2
    context = torch.multiprocessing.spawn(f, (what,), 1, join=False, daemon=daemon)
    if what == "interrupted":
        signal.raise_signal(signal.SIGINT)
    if what == "forever" and not daemon:
        context.join()
    print("end of the program", flush=True)
"""


def program(tmp_path: Path, *words: str) -> "subprocess.Popen[str]":
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    return subprocess.Popen(
        [sys.executable, str(file), *words],
        env=os.environ | {"PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@pytest.mark.parametrize(
    ("words", "code", "end"),
    [
        (("nothing",), 0, ""),
        (("raise",), 1, "KeyError: 'missing'\n\nrank 0 failed at 0.000 ns"),
        (("forever", "daemon"), 0, ""),
    ],
)
def test_a_context_that_is_not_joined_is_joined_at_exit_and_decides_the_exit_code(
    tmp_path: Path, words: tuple[str, ...], code: int, end: str
):
    run = program(tmp_path, *words)
    out, err = run.communicate(timeout=LIMIT_S)
    assert (run.returncode, err.strip().endswith(end)) == (code, True)
    assert "end of the program" in out
    assert ("up" in out) == (words == ("nothing",)) or "daemon" in words


def test_ctrl_c_ends_a_program_that_joins_and_its_ranks(tmp_path: Path):
    run = program(tmp_path, "forever")
    assert run.stdout is not None
    assert run.stdout.readline() == "up\n"
    os.killpg(run.pid, signal.SIGINT)
    # The pipes are closed when the ranks have ended as well.
    out, err = run.communicate(timeout=LIMIT_S)
    assert run.returncode == -signal.SIGINT
    assert err.strip().endswith("KeyboardInterrupt")
    assert "end of the program" not in out


def test_ctrl_c_before_the_join_ends_the_ranks_as_well(tmp_path: Path):
    run = program(tmp_path, "interrupted")
    out, err = run.communicate(timeout=LIMIT_S)
    assert run.returncode == -signal.SIGINT
    assert err.strip().endswith("KeyboardInterrupt")
    assert "end of the program" not in out


HEAD = "import os, sys\nfrom runtime import torch\ndist = torch.distributed\n"


def script_run(tmp_path: Path, body: str, *words: str):
    script = tmp_path / "train.py"
    script.write_text(HEAD + body)
    chips = ("--topology", str(tmp_path / "small.yaml"), "--sips", "2")
    return kernbench(tmp_path / "out", *chips, *words, str(script))


def test_a_script_that_exits_with_a_code_is_one_line_with_rank_code_and_time(tmp_path: Path):
    run = script_run(
        tmp_path,
        "assert os.environ['TORCHELASTIC_RUN_ID'] == 'none'\n"
        "dist.init_process_group('ahbm')\n"
        "sys.exit(3 * dist.get_rank())\n",
    )
    assert run.code == 1
    error, files = run.err.splitlines()
    assert re.fullmatch(r"kernbench: error: rank 1 exited with code 3 at \d+\.\d{3} ns", error)
    assert files == f"kernbench: the files until the error are in {tmp_path / 'out'}"


def test_the_sips_beyond_the_world_size_have_no_rank(tmp_path: Path):
    ccl = tmp_path / "ccl.yaml"
    text = default_file("ccl.yaml").read_text()
    ccl.write_text(text.replace("world_size: null", "world_size: 2", 1))
    run = script_run(
        tmp_path,
        "dist.init_process_group('ahbm')\n"
        "x = torch.ones(8)\n"
        "dist.all_reduce(x)\n"
        "print(os.environ['WORLD_SIZE'], dist.get_world_size(), x.numpy()[0])\n",
        "--sips",
        "3",
        "--ccl",
        str(ccl),
    )
    assert (run.code, run.out.count("2 2 2.0\n")) == (0, 2)
    assert "train.py (ws=2): 2 ranks finished" in run.out


def test_a_rank_that_computes_for_too_long_is_the_missing_rank_of_the_collective():
    with pytest.raises(CollectiveTimeout) as caught:
        spawn(_compute_on_rank_0, (1.0, 2.0), nprocs=3, procs=1)
    assert str(caught.value).startswith(
        "all_reduce (call 2 of world) timed out after 1 s, the limit set by its process group: "
        "ranks 1, 2 waited, missing ranks: 0. "
    )


def test_a_rank_in_an_endless_loop_is_found_while_the_others_wait(tmp_path: Path):
    body = (
        "from datetime import timedelta\n"
        "dist.init_process_group('ahbm', timeout=timedelta(seconds=1))\n"
        "while dist.get_rank() == 0:\n"
        "    pass\n"
        "dist.barrier()\n"
    )
    run = script_run(tmp_path, body)
    assert run.code == 1
    assert "barrier (call 1 of world) timed out after 1 s" in run.err
    assert "rank 1 waited, missing ranks: 0" in run.err
    assert 'train.py", line 6 in <module>' in run.err


def test_a_longer_timeout_makes_a_slow_rank_legitimate():
    assert spawn(_compute_on_rank_0, (60.0, 0.8), nprocs=2, procs=1) is None


def test_wall_time_in_a_rank_that_simulates_is_warned_of_once(tmp_path: Path):
    """The warning is for the user's code, however it imports the clock, after it has simulated."""
    body = (
        "import time, timeit\n"
        "from time import perf_counter\n"
        "perf_counter(), time.time(), time.sleep(0.001)\n"
        "dist.init_process_group('ahbm')\n"
        "timeit.default_timer()\n"
        "if dist.get_rank() == 0:\n"
        "    perf_counter()\n"
        "time.time()\n"
        "time.monotonic_ns()\n"
    )
    run = script_run(tmp_path, body)
    assert run.code == 0
    text = r"train\.py:(\d+): UserWarning: time\.(\w+)\(\) measures wall time, .*now_ns"
    assert sorted(re.findall(text, run.err)) == [("10", "perf_counter"), ("11", "time")]
