"""Real processes that hang: a deadlock, a loop outside of simulated time, missing promises."""

import os
import re
from itertools import pairwise
from pathlib import Path

import pytest

from runtime.ccl.config import load_ccl
from tests.support.runs import Run, kernbench
from tests.support.topologies import variant_text

pytestmark = [pytest.mark.multiproc, pytest.mark.slow]

START = (
    "from runtime import DPPolicy, tl, torch\n"
    "dist = torch.distributed\n"
    "dist.init_process_group('ahbm', algorithm='ring')\n"
)
ONE_PE = "t = torch.ones(64, dp=DPPolicy(num_cubes=1, num_pes=1))\n"


def script_run(tmp_path: Path, body: str, *words: str, sips: int = 2, out: str = "out") -> Run:
    script = tmp_path / "user.py"
    script.write_text(START + ONE_PE + body)
    return kernbench(tmp_path / out, "--sips", str(sips), *words, str(script))


@pytest.mark.parametrize(("sips", "order"), [(2, (0, 1)), (3, (0, 2, 1))])
def test_a_deadlock_names_the_cycle_across_processes_and_keeps_the_pointers(
    tmp_path: Path, sips: int, order: tuple[int, ...]
) -> None:
    body = (
        "def listen(x):\n"
        "    tl.recv('global_W', 8, tl.float32)\n"
        "torch.launch('listen', listen, t)\n"
    )
    run = script_run(tmp_path, body, sips=sips)
    assert run.code == 1
    cycle = " -> ".join(f"sip {sip} cube 0 pe 0 recv global_W" for sip in order)
    assert f"\n  cycle: {cycle} -> (back)\n" in run.err
    assert f"recv global_W (sip {sips - 1} cube 0 pe 0) since" in run.err
    assert "user.py:6\n" in run.err
    waits = run.report["waits"]
    assert waits["wait_for_graph"] == [f"cycle: {cycle} -> (back)"]
    assert [blocked["coordinates"] for blocked in waits["blocked"]] == [
        [sip, 0, 0] for sip in range(sips)
    ]
    assert [(queue["coordinates"][0], queue["direction"]) for queue in waits["queues"]] == [
        (sip, direction) for sip in range(sips) for direction in ("global_E", "global_W")
    ]
    slots = load_ccl().file.defaults.n_slots
    assert all(
        queue["credits"] == slots and queue["rx"]["resource"] == "tcm" for queue in waits["queues"]
    )


def test_a_rank_that_never_calls_the_collective_is_at_the_end_of_the_chain(tmp_path: Path) -> None:
    run = script_run(tmp_path, "if dist.get_rank() != 1:\n    dist.all_reduce(t)\n", sips=3)
    assert run.code == 1
    assert re.search(
        r"chain: .* -> sip 1 cube 0 pe 0 runs no kernel: rank 1 has finished its program\n", run.err
    )
    assert re.search(
        r"never received: \d slots? from sip 0 cube 0 pe 0 in world/ring global_W"
        r" of sip 1 cube 0 pe 0\n",
        run.err,
    )


def test_a_deadlock_of_the_network_names_the_cycle_of_buffers_across_processes(
    tmp_path: Path,
) -> None:
    lone_cube = {"sip__cube_mesh": {"w": 1, "h": 1}, "cube__pe_layout__pe_per_corner": 1}
    topology = tmp_path / "topology.yaml"
    topology.write_text(variant_text(**lone_cube, noc__flow_control="credits"))
    # Wrong rules in every process: no dateline, and room for a packet only in an empty buffer.
    body = (
        "from runtime.model.sip_fabric import SipFabric\n"
        "from sip_node.chip.ports.credited_ports import LinkCredits\n"
        "SipFabric.layer = lambda *_: 0\n"
        "LinkCredits.has_room = lambda self, network, nbytes: not self._used[network]\n"
        "rank = dist.get_rank()\n"
        "x, y = torch.ones(4096), torch.zeros(4096)\n"
        "sent = dist.isend(x, (rank + 2) % 4)\n"
        "dist.irecv(y, (rank - 2) % 4).wait()\n"
        "sent.wait()\n"
    )
    run = script_run(tmp_path, body, "--topology", str(topology), sips=4)
    assert run.code == 1
    assert re.search(r"error: NetworkDeadlock at [\d,.]+ ns: no event is left; 8 full", run.err)
    for sip in range(4):
        assert re.search(rf"\n  sip {sip} ingress from sip {(sip - 1) % 4} \(.*\): IPCQ_", run.err)
        assert re.search(rf"\n  sip {sip} egress to sip {(sip + 1) % 4} \(.*\): IPCQ_", run.err)


def test_a_good_run_keeps_no_queues(tmp_path: Path) -> None:
    run = script_run(tmp_path, "dist.all_reduce(t)\n")
    assert run.code == 0
    assert run.report["waits"] == {"blocked": [], "wait_for_graph": [], "queues": []}


def test_a_program_that_loops_outside_of_simulated_time_is_named_with_its_stack_and_is_no_deadlock(
    tmp_path: Path,
) -> None:
    run = script_run(
        tmp_path,
        "dist.all_reduce(t)\nif dist.get_rank() == 1:\n    while True:\n        pass\n",
        "--timeout",
        "5",
    )
    assert run.code == 1
    assert re.search(
        r"LP 1 \(rank 1, pid \d+\) computes: no Status from it for 5 s, the limit set by "
        r"--timeout, in which it used \d+\.\d s of processor time",
        run.err,
    )
    assert "This is not a deadlock of queues" in run.err
    assert re.search(
        r"\n  LP 0 \(rank 0, pid \d+\) has stood at [\d,.]+ ns for .*"
        r" it waits for LP 1, which may still",
        run.err,
    )
    assert re.search(r'File ".*user\.py", line [78] in <module>', run.err)
    assert "IpcqDeadlock" not in run.err
    assert_gone(run)


def test_an_import_is_slow_and_no_hang_however_short_the_time_limit_is(tmp_path: Path) -> None:
    (tmp_path / "slow_module.py").write_text(
        "from time import process_time\n"
        "end = process_time() + 3\n"
        "while process_time() < end: pass\n"
    )
    # The second import comes long after the start, and another rank waits for it in a collective.
    body = "dist.all_reduce(t)\nif dist.get_rank() == 1:\n    import slow_module\ndist.barrier()\n"
    run = script_run(tmp_path, body, "--timeout", "2")
    assert run.code == 0, run.err


def test_a_compiler_that_a_rank_starts_is_slow_and_no_hang(tmp_path: Path) -> None:
    (tmp_path / "compiler.py").write_text(
        "from time import process_time\nwhile process_time() < 3: pass\n"
    )
    body = (
        "import subprocess, sys\n"
        f"subprocess.run([sys.executable, {str(tmp_path / 'compiler.py')!r}], check=True)\n"
    )
    run = script_run(tmp_path, body, "--timeout", "2")
    assert run.code == 0, run.err


def test_missing_promises_are_a_stalled_run_and_no_deadlock(tmp_path: Path) -> None:
    run = script_run(tmp_path, "dist.all_reduce(t)\n", "--jitter-ms", "1000000", "--timeout", "5")
    assert run.code == 1
    assert "for 5 s, the limit set by --timeout, though every LP is alive" in run.err
    for lp in (0, 1):
        assert re.search(
            rf"\n  LP {lp} \(rank {lp}, pid \d+\) has stood at .*"
            rf" and it waits for LP {1 - lp}, which",
            run.err,
        )
    assert "IpcqDeadlock" not in run.err
    assert_gone(run)


def assert_gone(run: Run) -> None:
    """Every process named in the error has ended."""
    pids = [int(pid) for pid in re.findall(r"pid (\d+)", run.err)]
    assert pids
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_the_trace_of_sends_and_receives_is_one_text_for_any_number_of_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERNBENCH_CCL_TRACE", "1")
    words = ("--sips", "2", "--max-bytes", "1024", "--warmup", "0", "--algorithm", "ring")
    texts = []
    for procs in ("1", "2"):
        run = kernbench(tmp_path / procs, "--procs", procs, *words)
        assert run.code == 0
        text = (run.directory / "ccl_trace.txt").read_text()
        for sip in (0, 1):
            # Lines of two processes come in any order, lines of one SIP in the order of time.
            printed = [line for line in run.err.splitlines() if line.startswith(f"[sip {sip}] ")]
            assert printed == [
                f"[sip {sip}] {line}"
                for line in text.splitlines()
                if f" ns  sip {sip} cube" in line
            ]
        texts.append(text)
    assert texts[0] == texts[1]
    times = [float(line.partition(" ns")[0].replace(",", "")) for line in texts[0].splitlines()]
    assert all(before <= after for before, after in pairwise(times))
    assert len(times) > 0
    assert texts[0].count(" send ") == texts[0].count(" recv ")


def test_the_trace_of_a_run_that_fails_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERNBENCH_CCL_TRACE", "1")
    run = script_run(tmp_path, "if dist.get_rank() == 0:\n    dist.all_reduce(t)\n")
    assert run.code == 1
    [first, *_] = (run.directory / "ccl_trace.txt").read_text().splitlines()
    assert " send global_E -> sip 1 cube 0 pe 0, " in first


def test_without_the_variable_there_is_no_trace_and_an_old_one_is_removed(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "ccl_trace.txt").write_text("old")
    run = script_run(tmp_path, "dist.all_reduce(t)\n")
    assert "[sip" not in run.err
    assert not (run.directory / "ccl_trace.txt").exists()


def test_a_variable_with_another_value_is_refused_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERNBENCH_CCL_TRACE", "yes")
    run = script_run(tmp_path, "")
    assert run.code == 2
    assert (
        run.err
        == "kernbench: error: KERNBENCH_CCL_TRACE is 'yes': 1 prints every send and receive, "
        "0 or nothing does not\n"
    )
