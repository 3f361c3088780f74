"""Real runs in a directory of the test, from the arguments of a command line."""

import json
import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import ExitStack, chdir, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

from kernbench.cli.main import main
from tests.support.warm_lps import warm_lps

ROOT = Path(__file__).parents[2]
_PROGRESS = " events/s  blocked "


@dataclass(frozen=True)
class Run:
    code: int
    out: str
    err: str
    directory: Path

    @property
    def report(self) -> dict[str, Any]:
        return json.loads((self.directory / "run.json").read_text())


def without_progress(errors: str) -> str:
    """Standard error of a run without its progress, of which a slow machine prints lines."""
    return "".join(line for line in errors.splitlines(keepends=True) if _PROGRESS not in line)


def kernbench(where: Path, *words: str) -> Run:
    """`kernbench --out <where> words...`, to its end: LPs are processes, this one coordinates.

    A process for the coordinator would import modules for longer than a small run takes.
    """
    return called(where.parent, "--out", str(where), *words, directory=where)


def called(folder: Path, *words: str, directory: Path | None = None, imported: str = "") -> Run:
    """`kernbench words...` in `folder`, to its end, as above; the run is in `directory`, if any.

    Its LPs have imported PyTorch where `imported` is `torch`.
    """
    with chdir(folder), warm_lps(imported), _caught() as (out, err):
        code = main(words)
        return Run(code, _written(out), _written(err), directory or folder)


def launched(where: Path, *words: str, hash_seed: int | None = 0, timeout_s: int = 100) -> Run:
    """`python launch.py --out <where> words...`, to its end: a process which starts LPs.

    Without a `hash_seed` the environment decides.
    """
    command = [sys.executable, str(ROOT / "launch.py"), "--out", str(where), *words]
    seed = {} if hash_seed is None else {"PYTHONHASHSEED": str(hash_seed)}
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        env=os.environ | seed,
        cwd=where.parent,
        timeout=timeout_s,
        check=False,
    )
    return Run(done.returncode, done.stdout, done.stderr, where)


@contextmanager
def _caught() -> Generator[tuple[IO[str], IO[str]]]:
    """Standard output and standard error of this process and of those which it starts."""
    with (
        TemporaryFile("w+", buffering=1) as out,
        TemporaryFile("w+", buffering=1) as err,
        ExitStack() as stack,
    ):
        for descriptor, file in ((1, out), (2, err)):
            own = os.dup(descriptor)
            stack.callback(os.close, own)
            stack.callback(os.dup2, own, descriptor)
            os.dup2(file.fileno(), descriptor)
        with redirect_stdout(out), redirect_stderr(err):
            yield out, err


def _written(file: IO[str]) -> str:
    file.flush()
    file.seek(0)
    return file.read()
