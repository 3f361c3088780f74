"""Tensors on the accelerator: a shape, an element type, and shards in the HBM slices of PEs."""

from typing import TYPE_CHECKING, NoReturn

import numpy as np

from runtime.torch.absent import absent_in_tensor
from runtime.torch.operators import TensorOperators
from runtime.torch.tensor_conversions import TensorConversions


class Tensor(TensorOperators, TensorConversions):
    """A tensor of one rank. Its elements are in simulated HBM, and the host accesses them by
    simulated requests.

    Each base class has one idea: `StoredTensor` the memory, `TensorViews` the windows,
    `TensorReads` what the host reads, `TensorMethods` and `TensorConversions` the work on the
    device, `TensorOperators` arithmetic.
    """

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a 0-d tensor")
        return self.shape[0]

    def __repr__(self) -> str:
        """Shape, dtype, mean and L2 norm. It reads the tensor, which takes simulated time."""
        described = f"shape={self.shape}, dtype={self.dtype!r}"
        if not self._state.data:
            return f"tensor({described}, no data)"
        values = self.numpy().astype(np.float64)
        mean = values.mean() if values.size else float("nan")
        return (
            f"tensor({described}, mean={mean:.6g}, norm={np.linalg.norm(values.reshape(-1)):.6g})"
        )

    if not TYPE_CHECKING:
        # With this method in sight, a type checker would accept every attribute.
        def __getattr__(self, name: str) -> NoReturn:
            # The methods and properties, without the attributes that `__init__` sets.
            known = [each for each in dir(type(self)) if not each.startswith("_")]
            raise absent_in_tensor(name, known)
