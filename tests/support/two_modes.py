"""One program in both modes, in two processes: interpreted, and with the compiled core."""

import os
from pathlib import Path
from tempfile import TemporaryFile

from tests.support.forks import Fork, fork_server

MODES = ("python", "compiled")
ROOT = Path(__file__).parents[2]


def printed(module: str, *arguments: object) -> list[list[str]]:
    """The lines that `python -m module arguments` prints in each of `MODES`, both at a time.

    The processes are forks of two servers, which have imported the simulator in their mode.
    """
    command = ("-m", module, *map(str, arguments))
    # A server does not import from its working directory, which may be a copy of the checkout.
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    with TemporaryFile("w+") as interpreted, TemporaryFile("w+") as compiled:
        outputs = (interpreted, compiled)
        forks = list[Fork]()
        for mode, output in zip(MODES, outputs, strict=True):
            environment = {**os.environ, "KERNBENCH_CORE": mode, "PYTHONPATH": path}
            server = fork_server(environment)
            forks.append(server.fork(command, environment, streams=(0, output.fileno(), 2)))
        assert [fork.wait() for fork in forks] == [0, 0]
        for output in outputs:
            output.seek(0)
        return [output.read().splitlines() for output in outputs]


def differing(module: str, first: int, count: int) -> list[str]:
    """The interpreted ones of `count` lines which are not those of the compiled core."""
    expected, found = printed(module, first, count)
    assert len(expected) == len(found) == count
    return [line for line, other in zip(expected, found, strict=True) if line != other]
