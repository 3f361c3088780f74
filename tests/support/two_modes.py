"""One program in both modes, in two processes: interpreted, and with the compiled core."""

import os
import subprocess
import sys


def started(core: str, module: str, *arguments: object) -> "subprocess.Popen[str]":
    """`python -m module arguments` with a core, whose lines are the results."""
    return subprocess.Popen(
        [sys.executable, "-m", module, *map(str, arguments)],
        env={**os.environ, "KERNBENCH_CORE": core},
        stdout=subprocess.PIPE,
        text=True,
    )


def differing(module: str, first: int, count: int) -> list[str]:
    """The interpreted ones of `count` lines which are not those of the compiled core."""
    with (
        started("python", module, first, count) as interpreted,
        started("compiled", module, first, count) as compiled,
    ):
        expected, found = (each.communicate()[0].splitlines() for each in (interpreted, compiled))
    assert len(expected) == len(found) == count
    return [line for line, other in zip(expected, found, strict=True) if line != other]
