"""The process of the command loads no simulator; for texts, no sockets either; and no pandas."""

import gc
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernbench.cli.main import main
from tests.support.topologies import variant_text

pytestmark = [pytest.mark.slow, pytest.mark.multiproc]

ROOT = Path(__file__).parents[2]
PROGRAM = """
import sys
from kernbench.cli.main import main
code = main(sys.argv[2:])
loaded = [name for name in sys.argv[1].split(",") if name in sys.modules]
sys.exit(f"loaded: {loaded}" if loaded else code)
"""


def modules_of(package: str) -> Iterator[str]:
    """The names of a package and of all modules in it, those in C included."""
    for path in (ROOT / package).rglob("*.py*"):
        if path.suffix in {".py", ".pyx"}:
            name = path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".")
            yield name.removesuffix(".__init__")


SIMULATORS = ("simpy", "matplotlib", "sip_node")
RUNNERS = ("simpy", "matplotlib", *sorted(modules_of("sip_node")))
ANALYSES = ("pandas", "pyarrow.dataset")
"""Packages that Arrow imports in its conversions of arrays and files, in half a second."""


@pytest.mark.parametrize(
    ("forbidden", "arguments"),
    [
        (("zmq", "rich", *SIMULATORS), "--list"),
        (("zmq", "rich", *SIMULATORS), "--help --bench milestone-1h-ccl"),
        (("zmq", "rich", *SIMULATORS), "perf --help"),
        (
            (*RUNNERS, *ANALYSES),
            "--topology small.yaml --out out --min-bytes 256 --max-bytes 256",
        ),
        (RUNNERS, "--topology small.yaml perf all_reduce -b 64"),
    ],
    ids=["list", "help", "perf help", "run", "perf"],
)
def test_a_command_does_not_load(
    forbidden: tuple[str, ...], arguments: str, tmp_path: Path
) -> None:
    (tmp_path / "small.yaml").write_text(variant_text(sip__cube_mesh={"w": 1, "h": 1}))
    # Found before one that is installed, and where none is.
    (tmp_path / "pandas.py").write_text("__version__ = '3.0.0'\n")
    command = [sys.executable, "-c", PROGRAM, ",".join(forbidden), *arguments.split()]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=tmp_path, timeout=100, check=False
    )
    # A run of more than a few seconds prints its progress to standard error.
    assert done.returncode == 0, done.stderr


OWN_PROCESS = """
import gc, os, sys
from kernbench.cli.main import main
sys.argv[1:] = ["--list"]
main()
import numpy
print(len(os.listdir("/proc/self/task")), gc.get_threshold()[0], gc.get_freeze_count())
"""


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="Linux lists threads in /proc")
def test_the_process_of_a_command_has_one_thread_and_collects_no_garbage_at_its_exit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)

    done = subprocess.run(
        [sys.executable, "-c", OWN_PROCESS], capture_output=True, text=True, timeout=100, check=True
    )

    threads, new_objects, not_collected = map(int, done.stdout.splitlines()[-1].split())
    assert threads == 1
    assert new_objects > gc.get_threshold()[0]
    assert not_collected > 10_000


def test_a_command_called_in_a_process_leaves_its_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    before = gc.get_threshold(), gc.get_freeze_count()

    assert main(["--list"]) == 0

    assert (gc.get_threshold(), gc.get_freeze_count()) == before
    assert "OPENBLAS_NUM_THREADS" not in os.environ
