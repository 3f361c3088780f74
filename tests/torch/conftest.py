import os
from collections.abc import Callable, Sequence
from pathlib import Path
from subprocess import TimeoutExpired
from tempfile import TemporaryFile
from unittest.mock import patch

import pytest

from coordinator.launch.launcher import lp_environment
from tests.support.forks import STARTED_BY, Fork, fork_server
from tests.support.runs import called, launched

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(__file__).parent / "programs"
EXAMPLES = ROOT / "examples" / "torch"

Runs = Callable[..., str]
_GLOO_S = 300


@pytest.fixture(scope="session", autouse=True)
def _pytorch() -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed: make setup-torch")


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """Runs a program, of `programs` or by its path, on SIPs; returns what it prints. Its files are
    in `out`.

    Its processes are forks of one that has imported PyTorch; variables that count when Python
    starts, or for the coordinator, have processes of their own.
    """

    def output(
        name: str,
        *arguments: str,
        program_arguments: Sequence[str] = (),
        sips: int = 1,
        code: int = 0,
        out: Path | None = None,
        **environment: str,
    ) -> str:
        out = out or tmp_path_factory.mktemp("runs")
        program = (str(PROGRAMS / name), *program_arguments)
        words = ("--sips", str(sips), *arguments, *program)
        with patch.dict(os.environ, environment):
            if any(each.startswith(STARTED_BY) for each in environment):
                done = launched(out, *words, hash_seed=None, timeout_s=600)
            else:
                done = called(ROOT, "--out", str(out), *words, imported="torch")
        assert done.code == code, done.out[-4000:] + done.err[-4000:]
        return done.out + done.err

    return output


@pytest.fixture(scope="session")
def on_gloo() -> Runs:
    """Runs a program, of `programs` or by its path, on CPUs with gloo.

    Its ranks have the variables of torchrun, and are forks of a process that has imported PyTorch.
    """
    from torch.distributed import TCPStore

    def output(name: str, *arguments: str, ranks: int, **environment: str) -> str:
        store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        of_all = lp_environment(os.environ | environment) | {
            "BACKEND": "gloo",
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(store.port),
            "WORLD_SIZE": str(ranks),
            "LOCAL_WORLD_SIZE": str(ranks),
            # The store is here, as that of torchrun is in its agent.
            "TORCHELASTIC_USE_AGENT_STORE": "True",
            "TORCHELASTIC_RESTART_COUNT": "0",
            "TORCHELASTIC_RUN_ID": "none",
        }
        command = [str(PROGRAMS / "gloo_worker.py"), str(PROGRAMS / name), *arguments]
        with TemporaryFile() as nothing, TemporaryFile("w+", encoding="utf-8") as out:
            streams = (nothing.fileno(), out.fileno(), out.fileno())
            workers = [
                fork_server(of_all, "torch").fork(
                    command, of_all | {"RANK": rank, "LOCAL_RANK": rank}, streams=streams
                )
                for rank in map(str, range(ranks))
            ]
            codes = _ended(workers)
            out.seek(0)
            printed = out.read()
        assert codes == [0] * ranks, printed[-4000:]
        return printed

    return output


def _ended(workers: Sequence[Fork]) -> list[int]:
    """The exit codes of all ranks, none of which outlives the test."""
    try:
        return [worker.wait(_GLOO_S) for worker in workers]
    except TimeoutExpired:
        for worker in workers:
            worker.kill()
        return [worker.wait() for worker in workers]
