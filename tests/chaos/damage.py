"""Damaged run directories: every command that reads one has a right answer or one line."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from hashlib import sha256
from itertools import product
from pathlib import Path
from random import Random

from tests.chaos.outcome import Outcome
from tests.support.run_tables import change_report, sign
from tests.support.runs import ROOT, kernbench

Damage = Callable[[Path, Random], object]
_LIMIT_S = 60.0
_HUGE_BYTES = 1 << 40
TABLE, OTHER_TABLE = "records/sip0.ops.parquet", "records/sip1.links.parquet"
FILES = ("run.json", "topology.yaml", TABLE, "records")
"""Each of them with each damage."""
OTHER_FILES = ("oplog.jsonl", "trace.json", "ccl.yaml", OTHER_TABLE)
OF_OTHER_FILES = ("random bytes", "a FIFO", "a link to /dev/zero")


def _replace(path: Path) -> None:
    """Remove a file or a folder."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


def _write(path: Path, content: bytes) -> None:
    _replace(path)
    path.write_bytes(content)


def _flip(path: Path, random: Random) -> None:
    if path.is_dir():
        path = random.choice(sorted(path.iterdir()))
    content = bytearray(path.read_bytes())
    for _ in range(random.choice((1, 100))):
        content[random.randrange(len(content))] ^= 1 << random.randrange(8)
    path.write_bytes(content)


def _truncate(path: Path, random: Random) -> None:
    if path.is_dir():
        path = random.choice(sorted(path.iterdir()))
    os.truncate(path, random.randrange(path.stat().st_size))


def _link(path: Path, target: Path) -> None:
    _replace(path)
    path.symlink_to(target)


def _fifo(path: Path, _: Random) -> None:
    _replace(path)
    os.mkfifo(path)


def _huge(path: Path, _: Random) -> None:
    _write(path, b"{")
    os.truncate(path, _HUGE_BYTES)


def _unreadable(path: Path, _: Random) -> None:
    path.chmod(0)


def _outside(path: Path) -> Path:
    """A file beside the runs, which no command may change."""
    return path.parents[1 if path.parent.name.startswith("0001") else 2] / "own"


OF_ANY_FILE: dict[str, Damage] = {
    "missing": lambda path, _: _replace(path),
    "empty": lambda path, _: _write(path, b""),
    "truncated": _truncate,
    "flipped bits": _flip,
    "random bytes": lambda path, random: _write(path, random.randbytes(5000)),
    "a folder or a file in its place": lambda path, _: (
        _write(path, b"x") if path.is_dir() else (_replace(path), path.mkdir())
    ),
    "a link to a file outside": lambda path, _: _link(path, _outside(path)),
    "a link to itself": lambda path, _: _link(path, path),
    "a link to /dev/zero": lambda path, _: _link(path, Path("/dev/zero")),
    "a FIFO": _fifo,
    "huge": _huge,
    "unreadable": _unreadable,
}
WHOLE: dict[str, Callable[[Path, Random], object]] = {
    "signed random table": lambda run, random: (
        (run / TABLE).write_bytes(b"PAR1" + random.randbytes(9999) + b"PAR1"),
        sign(run),
    ),
    "tables exchanged and signed": lambda run, _: (
        (run / TABLE).rename(run / "x"),
        (run / OTHER_TABLE).rename(run / TABLE),
        (run / "x").rename(run / OTHER_TABLE),
        sign(run),
    ),
    "a random value in run.json": lambda run, random: change_report(
        run,
        **{
            random.choice(sorted(json.loads((run / "run.json").read_text()))): random.choice(
                (None, -1, 1e308, 10**40, "", "\0", [], {}, {"x": [[]]}, True)
            )
        },
    ),
    "an op log of other values": lambda run, random: (run / "oplog.jsonl").write_text(
        "".join(f'{{"engine": {random.randrange(9)}}}\n' for _ in range(99))
    ),
    "a lock that is a FIFO": lambda run, _: os.mkfifo(run / ".lock"),
    "a lock that is a folder": lambda run, _: (run / ".lock").mkdir(),
    "a lock that leads outside": lambda run, _: (run / ".lock").symlink_to(run.parents[1] / "own"),
    "outputs that lead outside": lambda run, _: [
        (run / name).symlink_to(run.parents[1] / "own") for name in ("web.html", "trace.pftrace")
    ],
    "a run directory that is a link": lambda run, _: (
        run.rename(run.parents[1] / "elsewhere"),
        run.symlink_to(run.parents[1] / "elsewhere"),
    ),
    "a run directory that cannot be written": lambda run, _: run.chmod(0o500),
    "a run directory that is empty": lambda run, _: (_replace(run), run.mkdir()),
}


_OF_FILES = (*product(FILES, OF_ANY_FILE), *product(OTHER_FILES, OF_OTHER_FILES))
DAMAGES = (
    *((f"{file}: {name}", file, OF_ANY_FILE[name]) for file, name in _OF_FILES),
    *((name, "", damage) for name, damage in WHOLE.items()),
)
"""Name, file and damage of each case."""


def read_damaged(seed: int, number: int, folder: Path, undamaged: Callable[[], Path]) -> Outcome:
    """Copy a run, damage it, and read it with every command, which may write in it alone."""
    name, file, damage = DAMAGES[number % len(DAMAGES)]
    outcome = Outcome("damaged run directories", name)
    run = folder / "runs" / "0001-run"
    shutil.copytree(undamaged(), run)
    shutil.copytree(undamaged(), folder / "others" / "0002-run")
    (folder / "own").write_text("mine")
    (folder / "cwd").mkdir()
    damage(run / file, Random(f"{seed} damage {number}"))
    before = _contents(folder)
    command = [sys.executable, "-m", "tests.chaos.reading", str(run), str(folder / "cwd")]
    try:
        done = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=_LIMIT_S, check=False
        )
    except subprocess.TimeoutExpired:
        outcome.problems.append(f"no answer within {_LIMIT_S:g} s")
        return outcome
    outcome.output = f"{done.stdout[-1500:]}\n{done.stderr[-3000:]}"
    outcome.require(done.returncode == 0, f"exit code {done.returncode}")
    if done.returncode == 0:
        outcome.problems += json.loads(done.stdout)
    outcome.require(_contents(folder) == before, "a command has written outside of the directory")
    return outcome


def recorded_run(folder: Path) -> Path:
    """The directory of a run of two SIPs, in `folder`."""
    run = kernbench(folder / "run", "--sips=2", "--procs=1", "--bench=gemm-single-pe")
    if run.code:
        raise RuntimeError(run.err)
    return run.directory


def _contents(folder: Path) -> dict[str, str]:
    """The files in `folder` that are not of the damaged run, with their contents."""
    kept = (path for path in folder.rglob("*") if "runs" not in path.relative_to(folder).parts)
    return {
        str(path): sha256(path.read_bytes()).hexdigest()
        for path in kept
        if path.is_file() and "elsewhere" not in path.parts
    }
