"""The store of torchrun, to which the workers of all hosts are connected."""

from importlib import import_module
from typing import Any

from kernbench.cli.launchers.meeting import Store


def torchrun_store() -> Store:
    """The store of the agent that has started this process."""
    # PyTorch is there: it has started this process. It takes a second to import.
    rendezvous: Any = import_module("torch.distributed.rendezvous")
    store: Store = next(rendezvous.rendezvous("env://"))[0]
    return store
