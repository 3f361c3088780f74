"""Runs every command that reads a run directory, in this process or as a command of its own."""

import io
import json
import resource
import sys
import traceback
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path

from kernbench.cli.main import main
from tests.chaos.outcome import ERROR

READERS = ("why", "trace", "web")
_ADDRESS_SPACE_BYTES = 4 << 30
"""A reader that takes a huge file into memory fails instead of the machine."""


def read_problems(directory: Path, readers: tuple[str, ...] = READERS[:2]) -> list[str]:
    """Faults of the readers of the run in `directory`, and of the list of runs beside it."""
    problems = _problems(["runs", "list", str(directory.parent)], in_table=True)
    for reader in readers:
        problems += _problems([reader, str(directory)])
    return problems


def _problems(words: list[str], *, in_table: bool = False) -> list[str]:
    """Faults of a command that ends neither with exit code 0 nor with a single error."""
    out, errors = io.StringIO(), io.StringIO()
    try:
        with redirect_stdout(out), redirect_stderr(errors):
            code = main(words)
    except Exception:  # noqa: BLE001 - what a user would see as a traceback
        return [f"{' '.join(words)}: {traceback.format_exc()}"]
    text = errors.getvalue()
    starts, lines = len(ERROR.findall(text)), len(text.splitlines())
    if code == 0 and not starts:
        return []
    # `runs list` has a line for a damaged run in its table, and exit code 1.
    if code in (1, 2) and (starts == lines == 1 or (in_table and code == 1 and not lines)):
        return []
    return [f"{' '.join(words)}: exit code {code}, {starts} errors in {lines} lines: {text[-900:]}"]


def _main() -> int:
    """`python -m tests.chaos.reading RUN`: print the problems of all readers, then of `prune`."""
    directory = Path(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESS_SPACE_BYTES, _ADDRESS_SPACE_BYTES))
    with chdir(sys.argv[2]):
        problems = read_problems(directory, READERS)
        problems += _problems(["runs", "prune", "--keep", "0", str(directory.parent)])
    print(json.dumps(problems))
    return 0


if __name__ == "__main__":
    sys.exit(_main())
