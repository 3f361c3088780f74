"""A program run in both modes of the texts: interpreted, and compiled."""

import os
import subprocess
import sys

MODES = ("python", "compiled")


def printed(module: str, *arguments: object) -> list[list[str]]:
    """The lines that a module prints in each of `MODES`: two processes at a time."""
    started = [
        subprocess.Popen(
            [sys.executable, "-m", module, *map(str, arguments)],
            env={**os.environ, "KERNBENCH_CORE": mode},
            stdout=subprocess.PIPE,
            text=True,
        )
        for mode in MODES
    ]
    lines = [process.communicate()[0].splitlines() for process in started]
    assert [process.returncode for process in started] == [0, 0]
    return lines
