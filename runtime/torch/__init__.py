"""The PyTorch-like interface of host programs: what a script imports as `torch`.

It has PyTorch's names for tensors, collectives and process groups, and one way to compute:
`torch.launch` starts a kernel on the PEs that hold its tensors. Kernels are written in the language
of `runtime.language.tl`.
"""

from typing import TYPE_CHECKING, NoReturn

from runtime.core.dtypes import DType as dtype  # noqa: N813 - PyTorch's name
from runtime.core.dtypes import bfloat16, float16, float32, int8, int32
from runtime.model.blocked_layout import blocked_column_major, blocked_row_major
from runtime.model.placement import DPPolicy
from runtime.model.tile_placement import tiled_column_major, tiled_row_major
from runtime.torch import accelerator, ahbm, distributed, multiprocessing
from runtime.torch.absent import absent_in_torch
from runtime.torch.creation import empty, from_numpy, full, ones, tensor, zeros
from runtime.torch.matmul import matmul, mm
from runtime.torch.ops import launch
from runtime.torch.tensor import Tensor

half = float16

__all__ = [
    "DPPolicy",
    "Tensor",
    "accelerator",
    "ahbm",
    "bfloat16",
    "blocked_column_major",
    "blocked_row_major",
    "distributed",
    "dtype",
    "empty",
    "float16",
    "float32",
    "from_numpy",
    "full",
    "half",
    "int8",
    "int32",
    "launch",
    "matmul",
    "mm",
    "multiprocessing",
    "ones",
    "tensor",
    "tiled_column_major",
    "tiled_row_major",
    "zeros",
]

if not TYPE_CHECKING:
    # With this function in sight, a type checker would accept every attribute.
    def __getattr__(name: str) -> NoReturn:
        raise absent_in_torch(name, __all__)
