"""A PyTorch-like surface for host programs: what a script imports as `torch`."""

from runtime.core.dtypes import DType as dtype  # noqa: N813 - the name PyTorch users know
from runtime.core.dtypes import bfloat16, float16, float32, int8, int32
from runtime.model.placement import DPPolicy
from runtime.model.tiling import tiled_column_major, tiled_row_major
from runtime.torch import accelerator, ahbm, distributed, multiprocessing
from runtime.torch.ops import launch
from runtime.torch.tensor import Tensor, empty, from_numpy, full, ones, zeros

half = float16

__all__ = [
    "DPPolicy",
    "Tensor",
    "accelerator",
    "ahbm",
    "bfloat16",
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
    "multiprocessing",
    "ones",
    "tiled_column_major",
    "tiled_row_major",
    "zeros",
]
