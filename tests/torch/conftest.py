import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(__file__).parent / "programs"
EXAMPLES = ROOT / "examples" / "torch"

Runs = Callable[..., str]


@pytest.fixture(scope="session", autouse=True)
def _pytorch() -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed: make setup-torch")


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """Runs a program, of `programs` or by its path, on SIPs; returns what it prints."""

    def output(
        name: str,
        *arguments: str,
        program_arguments: Sequence[str] = (),
        sips: int = 1,
        code: int = 0,
        **environment: str,
    ) -> str:
        done = subprocess.run(
            [
                *(sys.executable, str(ROOT / "launch.py"), "--sips", str(sips)),
                *("--out", str(tmp_path_factory.mktemp("runs")), *arguments),
                *(str(PROGRAMS / name), *program_arguments),
            ],
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
            env={**os.environ, **environment},
        )
        assert done.returncode == code, done.stdout[-4000:] + done.stderr[-4000:]
        return done.stdout + done.stderr

    return output


@pytest.fixture(scope="session")
def on_gloo() -> Runs:
    """Runs a program, of `programs` or by its path, on CPUs with gloo."""

    def output(name: str, *arguments: str, ranks: int, **environment: str) -> str:
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
        program = [str(PROGRAMS / "gloo_worker.py"), str(PROGRAMS / name)]
        done = subprocess.run(
            [*command, "--nproc-per-node", str(ranks), *program, *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
            env={**os.environ, "BACKEND": "gloo", "OMP_NUM_THREADS": "1", **environment},
        )
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
        return done.stdout

    return output
