"""The store of torchrun, to which the workers of all hosts are connected."""

from collections.abc import Iterator

from kernbench.node.meeting import Store


def torchrun_store() -> Store:
    """The store of the agent that has started this process."""
    # PyTorch is there: it has started this process. It takes a second to import.
    from torch.distributed import rendezvous

    meetings: Iterator[tuple[Store, int, int]] = rendezvous.rendezvous("env://")  # pyright: ignore[reportUnknownMemberType] - PyTorch leaves it untyped
    return next(meetings)[0]
