"""The store of torchrun, to which the workers of all hosts are connected."""

from kernbench.node.meeting import Store


def torchrun_store() -> Store:
    """The store of the agent that has started this process."""
    # PyTorch is there: it has started this process. It takes a second to import.
    import torch.distributed as dist

    store, _, _ = next(dist.rendezvous("env://"))
    return store
