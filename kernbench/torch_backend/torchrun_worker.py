"""A worker of torchrun whose environment names a run of kernbench: it never gets beyond
`import torch`, but becomes a process of the run, in which the script starts anew.

The workers meet in the store of torchrun.
"""

import os
import sys
from types import ModuleType

import torch.distributed as dist

from kernbench.cli.torchrun_run import Worker, coordinate, take_part


def join() -> None:
    """Run the script in the simulation; does not return."""
    worker = Worker.of(os.environ, _command(sys.modules["__main__"]))
    store, _, _ = next(dist.rendezvous("env://"))
    if worker.rank:
        take_part(worker, store)
    sys.exit(coordinate(worker, store))


def _command(program: ModuleType) -> tuple[str, ...]:
    """What this process runs, as the end of a command line."""
    spec = program.__spec__
    if spec is None:
        return tuple(sys.argv)
    return ("-m", spec.name.removesuffix(".__main__"), *sys.argv[1:])
