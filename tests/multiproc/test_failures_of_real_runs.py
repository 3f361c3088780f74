"""Failures of real runs: the error names the cause, and nothing of the run is left."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.runs import ROOT, kernbench
from tests.support.sessions import wait_until_gone

pytestmark = [pytest.mark.multiproc, pytest.mark.slow]
LIMIT_S = 5.0

ENDLESS = """
from runtime import torch
dist = torch.distributed
dist.init_process_group("ahbm")
t = torch.ones(64)
if dist.get_rank() == 0:
    print("up", flush=True)
while True:
    dist.all_reduce(t)
    torch.ahbm.synchronize()
"""


class Running:
    """A run without an end."""

    def __init__(self, directory: Path) -> None:
        script = directory / "endless.py"
        script.write_text(ENDLESS)
        self.temp = directory / "tmp"
        self.temp.mkdir()
        command = [
            sys.executable,
            str(ROOT / "launch.py"),
            "--out",
            str(directory / "out"),
            "--sips",
            "2",
            str(script),
        ]
        self.process = subprocess.Popen(
            command,
            env=os.environ | {"TMPDIR": str(self.temp)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert self.process.stdout is not None
        assert "up\n" in iter(self.process.stdout.readline, "")
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        self.lps = [int(pid) for pid in children.split()]

    def everything_is_gone(self) -> bool:
        return all(wait_until_gone(pid, LIMIT_S) for pid in self.lps) and not list(
            self.temp.iterdir()
        )


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    # Where the tests run under nohup, their children would ignore the end of a terminal.
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    run = Running(tmp_path)
    signal.signal(signal.SIGHUP, before)
    yield run
    if run.process.poll() is None:
        run.process.kill()
        run.process.communicate()
    assert all(wait_until_gone(pid, LIMIT_S) for pid in run.lps)


def test_a_run_is_one_process_per_sip_and_the_coordinator_and_no_socket_beyond_ipc(
    running: Running,
) -> None:
    assert len(running.lps) == 2
    tcp_inodes = {
        line.split()[9]
        for name in ("tcp", "tcp6")
        for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]
    }
    for lp, pid in enumerate(running.lps):
        words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
        assert words[1:4] == ["-P", "-m", "sip_node"]
        assert words[words.index("--lp") + 1] == str(lp)
        links = [str(fd.readlink()) for fd in Path(f"/proc/{pid}/fd").iterdir() if fd.exists()]
        assert (
            not {re.sub(r"\D", "", link) for link in links if link.startswith("socket:")}
            & tcp_inodes
        )


def test_a_killed_rank_ends_the_run_and_is_named_with_signal_and_time(running: Running) -> None:
    os.kill(running.lps[1], signal.SIGKILL)
    _, errors = running.process.communicate(timeout=LIMIT_S)
    assert running.process.returncode == 1
    assert re.search(
        r"LP 1 \(rank 1, pid \d+\) was killed by SIGKILL .*last reported time [\d,.]+ ns", errors
    )
    assert running.everything_is_gone()


@pytest.mark.parametrize(
    ("signum", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_signal_stops_everything(running: Running, signum: signal.Signals, code: int) -> None:
    # Ctrl-C and the end of a terminal reach all processes.
    os.killpg(
        running.process.pid, signum
    ) if signum != signal.SIGTERM else running.process.send_signal(signum)
    _, errors = running.process.communicate(timeout=LIMIT_S)
    assert running.process.returncode == code
    assert f"error: stopped by {signum.name} at " in errors
    assert running.everything_is_gone()


def test_nothing_survives_a_coordinator_that_is_killed(running: Running) -> None:
    running.process.kill()
    running.process.communicate()
    assert running.everything_is_gone()


def script_run(tmp_path: Path, body: str, *words: str):
    script = tmp_path / "user.py"
    script.write_text(f"from runtime import DPPolicy, tl, torch\ndist = torch.distributed\n{body}")
    return kernbench(tmp_path / "out", "--sips", "2", *words, str(script))


def test_an_exception_with_a_text_of_20_mb_is_shown_with_its_beginning(tmp_path: Path) -> None:
    run = script_run(tmp_path, "raise ValueError('why' * 7_000_000)\n", "--timeout", "20")
    assert run.code == 1
    error = re.search(r"error: rank \d raised ValueError at 0.000 ns: (.*)", run.err)
    assert error is not None
    assert error[1].startswith("whywhy")
    assert error[1].endswith("w … [cut: 20,934,464 more bytes]")
    assert "hangs" not in run.err


@pytest.mark.parametrize(
    ("limit", "error"),
    [
        ("-n 24", "ulimit -n is 24 open files, and a run of 2 processes needs 36 in each: "),
        ("-v 500000", "ulimit -v is 500,000 KiB of address space, and a run of 2 processes needs "),
    ],
)
def test_a_limit_of_the_shell_that_is_too_low_is_one_line(
    tmp_path: Path, limit: str, error: str
) -> None:
    command = f"ulimit {limit}; {sys.executable} {ROOT / 'launch.py'} --sips 2 --bench congestion"
    done = subprocess.run(
        ["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith(f"kernbench: error: {error}")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("class ConfigError(Exception): pass\nraise ConfigError('mine')\n", "ConfigError"),
        ("class UsageError(Exception): pass\nraise UsageError('mine')\n", "UsageError"),
        ("from greenlet import GreenletExit\nraise GreenletExit('mine')\n", "GreenletExit"),
    ],
)
def test_an_exception_with_the_name_of_one_of_ours_is_shown_as_any_other(
    tmp_path: Path, body: str, error: str
) -> None:
    run = script_run(tmp_path, body)
    assert run.code == 1
    assert re.search(rf"error: rank \d raised {error} at 0.000 ns: mine\n", run.err)
    assert 'user.py", line 4, in <module>' in run.err


def test_a_rank_that_raises_shows_its_own_traceback_rank_and_simulated_time(tmp_path: Path) -> None:
    body = (
        "dist.init_process_group('ahbm')\n"
        "if dist.get_rank() == 1:\n"
        "    raise ValueError('no luck')\n"
        "dist.barrier()\n"
    )
    run = script_run(tmp_path, body)
    assert run.code == 1
    lines = run.err.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[1].endswith('user.py", line 5, in <module>')
    assert re.search(
        r"^kernbench: error: rank 1 raised ValueError at [\d,.]+ ns: no luck$",
        run.err,
        re.MULTILINE,
    )
    assert run.report["passed"] is False
    assert (run.directory / "oplog.jsonl").stat().st_size > 0


def test_a_kernel_that_only_receives_is_a_deadlock_that_names_every_blocked_pe(
    tmp_path: Path,
) -> None:
    body = (
        "dist.init_process_group('ahbm')\n"
        "def listen(x):\n    tl.recv('global_W', 8, tl.float32)\n"
        "torch.launch('listen', listen, torch.ones(8, dp=DPPolicy(num_cubes=2, num_pes=1)))\n"
    )
    run = script_run(tmp_path, body)
    assert run.code == 1
    for sip in (0, 1):
        for cube in (0, 1):
            assert (
                f"sip {sip} cube {cube} pe 0: kernel 'listen' recv global_W"
                f" (sip {1 - sip} cube {cube} pe 0) since" in run.err
            )
    assert "IpcqDeadlock" in run.err
    assert "Traceback" not in run.err


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("1 / 0", "ZeroDivisionError"),
        ("assert False", "AssertionError"),
        ("tl.load(x + 100, 4)", "PageFaultError"),
        ("tl.load(x, 4) @ 2", "KernelError"),
    ],
)
def test_an_error_of_a_kernel_is_12_lines_with_each_frame_of_the_user_and_its_text_once(
    tmp_path: Path, statement: str, error: str
) -> None:
    # Tensors that are global variables die when Python exits.
    body = f"""
def wrong(x):
    {statement}

def kernel(x):
    wrong(x)

x = torch.ones(8)
torch.launch("kernel", kernel, x)
torch.ahbm.synchronize()
"""
    run = script_run(tmp_path, body)
    assert run.code == 1
    lines = run.err.splitlines()
    assert len(lines) <= 12
    frames = [line.rpartition("user.py")[2] for line in lines if line.startswith("  File")]
    assert frames == ['", line 8, in kernel', '", line 5, in wrong']
    (summary,) = [line for line in lines if error in line]
    assert re.match(rf"kernbench: error: rank [01] raised {error} at [\d,.]+ ns", summary)
    text = run.err.partition(summary)[0]
    assert not any(part in text for part in summary.split(": ")[3:])
    assert re.search(r"kernel 'kernel' on sip [01] cube 0 pe 0", run.err)
    assert "launched at user.py:11" in run.err.replace(f"{tmp_path}/", "")


def test_a_page_fault_names_kernel_source_line_address_and_tensor(tmp_path: Path) -> None:
    body = (
        "def wild(x):\n"
        "    tl.load(x + 100, 4)\n"
        "torch.launch('wild', wild, torch.ones(8))\n"
        "torch.ahbm.synchronize()\n"
    )
    run = script_run(tmp_path, body)
    assert run.code == 1
    where = r"page fault in kernel 'wild' on sip \d cube 0 pe 0 at \S*user\.py:4"
    assert re.search(rf"{where}: 16 bytes at virtual address 0x1\d+", run.err)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--sips", "0"), "--sips"),
        (("--sips", "1025"), "an address names 1 to 1024"),
        (("--bench", "ccl-alreduce"), "did you mean 'ccl-allreduce'?"),
        (("--sip", "2"), "did you mean '--sips'?"),
        (("--algorithm", "rnig"), "did you mean 'ring'?"),
        (("--sips", "2", "--procs", "3"), "--procs 3 for 2 SIPs"),
        (("--topology", "nowhere.yaml"), "nowhere.yaml: no such file"),
        (("no-such-script.py",), "no such script"),
    ],
)
def test_bad_input_gets_one_clear_line_and_exit_code_2(
    tmp_path: Path, words: tuple[str, ...], problem: str
) -> None:
    run = kernbench(tmp_path / "out", *words)
    assert run.code == 2
    assert len(run.err.splitlines()) == 1
    assert run.err.startswith("kernbench: error: ")
    assert problem in run.err


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("count: 2 ", "cuont: 2 ", "system.sips.cuont: unknown key; did you mean 'count'?"),
        ("count: 2 ", "count: two ", "system.sips.count: should be a valid integer, got 'two'"),
        ("topology: ring_1d ", "topology: mesh_2d ", "system.sips"),
        ("  bw_gbs: 128 ", "", "ucie.bw_gbs: this key is missing"),
    ],
)
def test_a_mistake_in_the_topology_file_is_reported_with_its_key_path(
    tmp_path: Path, old: str, new: str, problem: str
) -> None:
    text = (ROOT / "topology.yaml").read_text()
    assert old in text
    file = tmp_path / "t.yaml"
    file.write_text(text.replace(old, new))
    run = kernbench(tmp_path / "out", "--topology", str(file))
    assert run.code == 2
    assert len(run.err.splitlines()) == 1
    assert problem in run.err
