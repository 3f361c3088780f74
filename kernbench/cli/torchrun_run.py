"""A worker of torchrun whose environment names a run: `KERNBENCH_RUN=run torchrun ... train.py`.

It takes part in the run as `kernbench node` does, with the script that torchrun has started.
"""

import shlex
import sys
from collections.abc import Mapping, Sequence

from kernbench.cli.main import main
from kernbench.cli.own_process import own_process
from runtime.wire.environment import TORCHRUN_RUN


def options_of_run(environment: Mapping[str, str]) -> list[str]:
    """The options in the variable; `SystemExit` where it names no run."""
    text = environment[TORCHRUN_RUN]
    try:
        name, *options = shlex.split(text)
    except ValueError:
        name, options = "", []
    if name != "run":
        sys.exit(
            f"kernbench: error: {TORCHRUN_RUN} is {text!r}: expected 'run', or 'run' with "
            "options, such as 'run --topology big.yaml'"
        )
    return options


def take_part(options: Sequence[str], command: Sequence[str]) -> int:
    """Take part in a run of `command`: a script, or `-m` and a module, and the arguments.

    Returns the exit code, in the process of rank 0 alone.
    """
    with own_process():
        return main(["node", *options, *command])
