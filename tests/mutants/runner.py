"""Runs `validate` on copies of the checkout, each with one mutant."""

import csv
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from runtime.core.wallclock import now_s
from tests.mutants.mutant import Mutant

ROOT = Path(__file__).parents[2]
PACKAGES = ("runtime", "sip_node", "coordinator", "kernbench")
FILES = ("topology.yaml", "ccl.yaml")
SLACK, SLACK_S = 3, 30
"""A run hangs if it takes longer than SLACK times the run without a mutant, and SLACK_S more."""


@dataclass(frozen=True)
class Outcome:
    """The end of a run of `validate`.

    `word` is `noticed` if a check is out of tolerance, `crashed` if `validate` failed without a
    result, `hung` if it did not end in time, else `survived`. `ids` are the checks out of
    tolerance, `last_line` the last line of the errors.
    """

    word: str
    ids: tuple[str, ...] = ()
    last_line: str = ""

    @property
    def is_notice(self) -> bool:
        """Whether the run differs from that without a mutant."""
        return self.word != "survived"


def unmutated_s(timeout_s: float = 1800) -> float:
    """The wall time of all of `validate` without a mutant; raises `SystemExit` if a check fails."""
    with copy_of_checkout() as root:
        began_s = now_s()
        outcome = _validate(root, "", timeout_s)
        if outcome.is_notice:
            detail = " ".join(outcome.ids) or outcome.last_line
            raise SystemExit(f"mutants: validate {outcome.word} without a mutant: {detail}")
        return now_s() - began_s


def outcome_of(mutant: Mutant, whole_s: float, *, expected_only: bool) -> Outcome:
    """Run the checks which are expected to notice a mutant, then all; stop at the first notice.

    `whole_s` is the time of all checks without a mutant. With `expected_only`, all the other
    checks do not run.
    """
    with copy_of_checkout() as root:
        mutant.apply(root)
        timeout_s = SLACK * whole_s + SLACK_S
        outcome = _validate(root, mutant.noticed_by, timeout_s)
        if outcome.is_notice or expected_only:
            return outcome
        return _validate(root, "", timeout_s)


def _validate(root: Path, prefix: str, timeout_s: float) -> Outcome:
    """One run in the copy `root`; with `--procs 1`, since mutants run side by side."""
    rows = root / "checks.csv"
    rows.unlink(missing_ok=True)
    options = ["--procs", "1", "--fail-fast", "--only", prefix, "--csv", str(rows)]
    command = [sys.executable, "-m", "kernbench", "validate", *options]
    # The copy before the installed packages, which are those of the checkout.
    environment = {
        **os.environ,
        "PYTHONPATH": str(root),
        "PYTHONDONTWRITEBYTECODE": "1",
        # The mutants are edits of Python: twins in C would run without them.
        "KERNBENCH_CORE": "python",
    }
    try:
        run = subprocess.run(
            command,
            check=False,
            cwd=root,
            env=environment,
            capture_output=True,
            text=True,
            timeout=timeout_s,
        )
    except subprocess.TimeoutExpired:
        return Outcome("hung")
    if run.returncode == 0:
        return Outcome("survived")
    ids = tuple(_missed(rows)) if rows.exists() else ()
    last_line = (run.stderr.strip().splitlines() or [""])[-1]
    return Outcome("noticed" if ids else "crashed", ids, last_line)


def _missed(rows: Path) -> Iterator[str]:
    with rows.open(newline="", encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            if row["verdict"] == "MISS":
                yield row["id"]


@contextmanager
def copy_of_checkout() -> Iterator[Path]:
    """A copy of everything that `validate` loads, in a temporary directory."""
    with TemporaryDirectory(prefix="mutant-of-kernbench-") as name:
        root = Path(name)
        for package in PACKAGES:
            # With the compiled modules: Python compiles a file again if its time or size differs.
            shutil.copytree(ROOT / package, root / package)
        for file in FILES:
            shutil.copy2(ROOT / file, root / file)
        yield root
