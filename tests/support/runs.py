"""Real runs in a folder of the test's own, from the words of a command line."""

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

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Run:
    code: int
    out: str
    err: str
    directory: Path

    @property
    def report(self) -> dict[str, Any]:
        return json.loads((self.directory / "run.json").read_text())


def kernbench(where: Path, *words: str) -> Run:
    """`kernbench --out <where> words...`, to its end: the LPs are processes, the coordinator is the test's own.

    A process of its own would be busy with imports for longer than the coordinator of a small run is with the run.
    """
    with chdir(where.parent), _caught() as (out, err):
        code = main(["--out", str(where), *words])
        return Run(code, _written(out), _written(err), where)


def launched(where: Path, *words: str, hash_seed: int = 0) -> Run:
    """`python launch.py --out <where> words...`, to its end: a process with LPs of its own."""
    command = [sys.executable, str(ROOT / "launch.py"), "--out", str(where), *words]
    environment = os.environ | {"PYTHONHASHSEED": str(hash_seed)}
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        env=environment,
        cwd=where.parent,
        timeout=100,
        check=False,
    )
    return Run(done.returncode, done.stdout, done.stderr, where)


@contextmanager
def _caught() -> Generator[tuple[IO[str], IO[str]]]:
    """Whatever this process and those that it starts write to standard output and standard error."""
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
