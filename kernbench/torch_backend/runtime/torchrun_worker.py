"""A worker of torchrun whose environment names a run of kernbench: it never gets beyond
`import torch`, but becomes a process of the run, in which the script starts anew.
"""

import os
import sys
from types import ModuleType

from kernbench.cli.torchrun_run import options_of_run, take_part


def join() -> None:
    """Run the script in the simulation; does not return."""
    command = _command(sys.modules["__main__"])
    sys.exit(take_part(options_of_run(os.environ), command))


def _command(program: ModuleType) -> tuple[str, ...]:
    """The program of this process, as the end of a command line."""
    spec = program.__spec__
    if spec is None:
        return tuple(sys.argv)
    return ("-m", spec.name.removesuffix(".__main__"), *sys.argv[1:])
