"""Storages of the device in `torch.load`."""

from typing import Any

import torch

from kernbench.torch_backend.aten.operators import DEVICE

_PRIORITY = 19
"""Before the entry of PyTorch for such devices, which has 23; each entry has its own."""


def register_loading() -> None:
    """Add what PyTorch's entry for such devices lacks."""
    torch.serialization.register_package(_PRIORITY, lambda _: None, _empty)


def _empty(storage: Any, location: str) -> Any:
    """A storage of which the elements come later, as in pickles: PyTorch would copy the memory of
    the host as it happens to be, which differs in each run. None for any other one.
    """
    if location.partition(":")[0] == DEVICE and getattr(
        storage, "_torch_load_uninitialized", False
    ):
        return torch.UntypedStorage(storage.nbytes(), device=location)
    return None
