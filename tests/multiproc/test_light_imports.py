"""The process of the command loads no simulator; for texts, no sockets either."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.topologies import variant_text

pytestmark = [pytest.mark.slow, pytest.mark.multiproc]

PROGRAM = """
import sys
from kernbench.cli.main import main
code = main(sys.argv[2:])
loaded = [name for name in sys.argv[1].split(",") if name in sys.modules]
sys.exit(f"loaded: {loaded}" if loaded else code)
"""
SIMULATORS = ("simpy", "matplotlib", "sip_node")


@pytest.mark.parametrize(
    ("forbidden", "arguments"),
    [
        (("zmq", "rich", *SIMULATORS), "--list"),
        (("zmq", "rich", *SIMULATORS), "--help --bench milestone-1h-ccl"),
        (("zmq", "rich", *SIMULATORS), "perf --help"),
        (SIMULATORS, "--topology small.yaml --out out --min-bytes 256 --max-bytes 256"),
        (SIMULATORS, "--topology small.yaml perf all_reduce -b 64"),
    ],
    ids=["list", "help", "perf help", "run", "perf"],
)
def test_a_command_does_not_load(
    forbidden: tuple[str, ...], arguments: str, tmp_path: Path
) -> None:
    (tmp_path / "small.yaml").write_text(variant_text(sip__cube_mesh={"w": 1, "h": 1}))
    command = [sys.executable, "-c", PROGRAM, ",".join(forbidden), *arguments.split()]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=tmp_path, timeout=100, check=False
    )
    # A run of more than a few seconds prints its progress to standard error.
    assert done.returncode == 0, done.stderr
