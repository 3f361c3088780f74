"""No other user can read the id of a run, which admits processes to it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from coordinator.launch.launcher import Child, InterpreterLauncher, LpSpec
from coordinator.launch.start import Launch
from coordinator.plan import Plan, ProgramSpec, load_config
from coordinator.session import Session
from tests.support.sessions import ROOT, Recorder

pytestmark = [pytest.mark.slow, pytest.mark.multiproc]


class _Inspected:
    """Starts LPs, and reads what the system shows of each process and of the coordinator."""

    def __init__(self) -> None:
        self.shown = list[bytes]()

    def start(self, spec: LpSpec) -> Child:
        child = InterpreterLauncher().start(spec)
        for pid in (child.pid, os.getpid()):
            for name in ("cmdline", "environ"):
                self.shown.append(Path(f"/proc/{pid}/{name}").read_bytes())
        return child


def test_the_id_is_in_no_command_line_and_no_environment_of_a_run():
    launcher = _Inspected()
    program = ProgramSpec(
        "bench", "ccl", "kernbench.benches.ccl_allreduce:ccl_allreduce", {"max_bytes": 4096}
    )
    with Launch(launcher) as launch:
        plan = Plan(load_config(None, None, 2), program, procs=2)
        assert Session(plan, launch, Recorder()).run().error is None
        run_id = launch.run_id.encode()
    assert len(launcher.shown) == 8
    assert any(b"sip_node" in each for each in launcher.shown)
    assert not [each for each in launcher.shown if run_id in each]


@pytest.mark.parametrize(
    ("words", "given", "problem"),
    [
        ((), b"", "no id of a run in file 0 (--run-id-fd)"),
        (("--run-id-fd", "77"), b"0123\n", "--run-id-fd 77: Bad file descriptor"),
    ],
)
def test_an_lp_without_an_id_ends_with_one_line(words: tuple[str, ...], given: bytes, problem: str):
    command = [sys.executable, "-m", "sip_node", "--connect", "ipc:///tmp/none", "--lp", "0"]
    done = subprocess.run(
        [*command, *words], input=given, capture_output=True, cwd=ROOT, check=False
    )
    assert done.returncode == 2
    assert done.stderr.decode().splitlines()[-1] == f"python -m sip_node: error: {problem}"
