"""Runs all checks, or a test of records, on copies of the checkout, each with one mutant."""

import csv
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from runtime.core.wallclock import now_s
from tests.mutants.mutant import TESTS, Mutant

ROOT = Path(__file__).parents[2]
PACKAGES = ("runtime", "sip_node", "coordinator", "kernbench")
FILES = ("topology.yaml", "ccl.yaml")
# What pytest reads besides: the tests, its options, and the script of the command line.
FOR_TESTS = ("pyproject.toml", "launch.py")
SLACK, SLACK_S = 3, 30
"""A run hangs if it takes longer than SLACK times the run without a mutant, and SLACK_S more."""


@dataclass(frozen=True)
class Outcome:
    """The end of a run of the checks.

    `word` is `noticed` if a check is out of tolerance or a test fails, `crashed` if there is no
    result, `hung` if the run did not end in time, else `survived`. `ids` are the checks out of
    tolerance, or the tests that failed; `last_line` is the last line of the errors.
    """

    word: str
    ids: tuple[str, ...] = ()
    last_line: str = ""

    @property
    def is_notice(self) -> bool:
        """Whether the run differs from that without a mutant."""
        return self.word != "survived"


def unmutated_s(timeout_s: float = 1800) -> float:
    """The wall time of all checks without a mutant; raises `SystemExit` if one fails."""
    with copy_of_checkout() as root:
        began_s = now_s()
        outcome = _checks(root, "", timeout_s)
        if outcome.is_notice:
            detail = " ".join(outcome.ids) or outcome.last_line
            raise SystemExit(f"mutants: the checks {outcome.word} without a mutant: {detail}")
        return now_s() - began_s


def check_tests(mutants: Iterable[Mutant], timeout_s: float = 1800) -> None:
    """Run the tests of the mutants without a mutant; raises `SystemExit` if one fails."""
    tests = sorted({mutant.noticed_by for mutant in mutants if mutant.is_noticed_by_test})
    if tests:
        with copy_of_checkout() as root:
            outcome = _pytest(root, tests, timeout_s)
        if outcome.is_notice:
            detail = " ".join(outcome.ids) or outcome.last_line
            raise SystemExit(f"mutants: tests {outcome.word} without a mutant: {detail}")


def outcome_of(mutant: Mutant, whole_s: float, *, expected_only: bool) -> Outcome:
    """Run what is expected to notice a mutant, then all checks; stop at the first notice.

    `whole_s` is the time of all checks without a mutant. With `expected_only`, all the other
    checks do not run.
    """
    with copy_of_checkout() as root:
        mutant.apply(root)
        timeout_s = SLACK * whole_s + SLACK_S
        if mutant.is_noticed_by_test:
            outcome = _pytest(root, [mutant.noticed_by], timeout_s, with_core=mutant.with_core)
        else:
            outcome = _checks(root, mutant.noticed_by, timeout_s)
        if outcome.is_notice or expected_only:
            return outcome
        return _checks(root, "", timeout_s)


def _checks(root: Path, prefix: str, timeout_s: float) -> Outcome:
    """One run in the copy `root`; with `--procs 1`, since mutants run side by side."""
    rows = root / "checks.csv"
    rows.unlink(missing_ok=True)
    options = ["--procs", "1", "--fail-fast", "--only", prefix, "--csv", str(rows)]
    run = _run(root, ["tests.fidelity", *options], timeout_s)
    if run is None:
        return Outcome("hung")
    if run.returncode == 0:
        return Outcome("survived")
    ids = tuple(_missed(rows)) if rows.exists() else ()
    last_line = (run.stderr.strip().splitlines() or [""])[-1]
    return Outcome("noticed" if ids else "crashed", ids, last_line)


def _pytest(
    root: Path, tests: Sequence[str], timeout_s: float, *, with_core: bool = False
) -> Outcome:
    """One run of tests in the copy `root`, to the first failure."""
    options = ["-q", "-x", "-p", "no:cacheprovider", "-p", "no:randomly"]
    run = _run(root, ["pytest", *options, *tests], timeout_s, with_core=with_core)
    if run is None:
        return Outcome("hung")
    if run.returncode == 0:
        return Outcome("survived")
    lines = run.stdout.strip().splitlines() or [""]
    failed = [line.split()[1] for line in lines if line.startswith(("FAILED ", "ERROR "))]
    # 1: tests have failed. Any other code: pytest itself has, for example without a test.
    word = "noticed" if run.returncode == 1 and failed else "crashed"
    return Outcome(word, tuple(failed), lines[-1])


def _run(
    root: Path, arguments: Sequence[str], timeout_s: float, *, with_core: bool = False
) -> "subprocess.CompletedProcess[str] | None":
    """A module of Python in the copy `root`; None if it does not end in time."""
    # The copy before the installed packages, which are those of the checkout.
    environment = {
        **os.environ,
        "PYTHONPATH": str(root),
        "PYTHONDONTWRITEBYTECODE": "1",
        # The mutants are edits of Python: twins in C would run without them.
        "KERNBENCH_CORE": "" if with_core else "python",
    }
    try:
        return subprocess.run(
            [sys.executable, "-m", *arguments],
            check=False,
            cwd=root,
            env=environment,
            capture_output=True,
            text=True,
            timeout=timeout_s,
        )
    except subprocess.TimeoutExpired:
        return None


def _missed(rows: Path) -> Iterator[str]:
    with rows.open(newline="", encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            if row["verdict"] == "MISS":
                yield row["id"]


@contextmanager
def copy_of_checkout() -> Iterator[Path]:
    """A copy of everything that checks and tests load, in a temporary directory."""
    with TemporaryDirectory(prefix="mutant-of-kernbench-") as name:
        root = Path(name)
        for package in PACKAGES:
            # With the compiled modules: Python compiles a file again if its time or size differs.
            shutil.copytree(ROOT / package, root / package)
        shutil.copytree(ROOT / TESTS, root / TESTS, ignore=shutil.ignore_patterns("__pycache__"))
        for file in FILES + FOR_TESTS:
            shutil.copy2(ROOT / file, root / file)
        yield root
