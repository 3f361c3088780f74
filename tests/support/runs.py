"""Real runs from the command line, in a folder of the test's own."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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


def kernbench(where: Path, *words: str, hash_seed: int = 0) -> Run:
    """`python launch.py --out <where> words...`, to its end."""
    command = [sys.executable, str(ROOT / "launch.py"), "--out", str(where), *words]
    environment = os.environ | {"PYTHONHASHSEED": str(hash_seed)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=where.parent, timeout=100, check=False)
    return Run(done.returncode, done.stdout, done.stderr, where)
