"""The PyTorch-like interface of host programs: what a script imports as `torch`.

It has PyTorch's names for tensors, their operators, collectives and process groups. `torch.launch`
starts a kernel of the user on the PEs that hold its tensors. Kernels are written in the language of
`runtime.language.tl`.
"""

from typing import TYPE_CHECKING, NoReturn

from runtime.core.dtypes import DType as dtype  # noqa: N813 - PyTorch's name
from runtime.core.dtypes import (
    bfloat16,
    float16,
    float32,
    float64,
    int8,
    int32,
    int64,
    uint8,
)
from runtime.core.dtypes import boolean as bool  # noqa: A004 - PyTorch's name
from runtime.core.dtypes import float8e4nv as float8_e4m3fn
from runtime.core.dtypes import float8e5 as float8_e5m2
from runtime.device import ahbm
from runtime.device.launches.launch import launch
from runtime.device.operations.elementwise import (
    abs,  # noqa: A004 - a name of PyTorch
    add,
    bitwise_and,
    bitwise_not,
    bitwise_or,
    bitwise_xor,
    clamp,
    cos,
    div,
    eq,
    exp,
    ge,
    gt,
    le,
    log,
    lt,
    maximum,
    minimum,
    mul,
    ne,
    neg,
    pow,  # noqa: A004 - a name of PyTorch
    relu,
    sigmoid,
    sin,
    sqrt,
    sub,
    tanh,
)
from runtime.device.operations.matmul import matmul, mm
from runtime.device.operations.reductions import (
    all,  # noqa: A004 - a name of PyTorch
    allclose,
    amax,
    amin,
    any,  # noqa: A004 - a name of PyTorch
    equal,
    max,  # noqa: A004 - a name of PyTorch
    mean,
    min,  # noqa: A004 - a name of PyTorch
    softmax,
    sum,  # noqa: A004 - a name of PyTorch
)
from runtime.device.streams.device import device
from runtime.model.blocked_layout import blocked_column_major, blocked_row_major
from runtime.model.placement import DPPolicy
from runtime.model.tile_placement import tiled_column_major, tiled_row_major
from runtime.torch import accelerator, distributed, multiprocessing
from runtime.torch.absent import absent_in_torch
from runtime.torch.tensors.creation import (
    empty,
    empty_like,
    from_numpy,
    full,
    full_like,
    ones,
    ones_like,
    tensor,
    zeros,
    zeros_like,
)
from runtime.torch.tensors.joining import cat, chunk, split, stack
from runtime.torch.tensors.random_tensors import (
    Generator,
    initial_seed,
    manual_seed,
    rand,
    rand_like,
    randint,
    randn,
    randn_like,
    randperm,
)
from runtime.torch.tensors.sequences import arange, eye, linspace
from runtime.torch.tensors.tensor import Tensor

half = float16
float = float32  # noqa: A001 - PyTorch's names
double = float64
int = int32  # noqa: A001
long = int64

__all__ = [
    "DPPolicy",
    "Generator",
    "Tensor",
    "abs",
    "accelerator",
    "add",
    "ahbm",
    "all",
    "allclose",
    "amax",
    "amin",
    "any",
    "arange",
    "bfloat16",
    "bitwise_and",
    "bitwise_not",
    "bitwise_or",
    "bitwise_xor",
    "blocked_column_major",
    "blocked_row_major",
    "bool",
    "cat",
    "chunk",
    "clamp",
    "cos",
    "device",
    "distributed",
    "div",
    "double",
    "dtype",
    "empty",
    "empty_like",
    "eq",
    "equal",
    "exp",
    "eye",
    "float",
    "float8_e4m3fn",
    "float8_e5m2",
    "float16",
    "float32",
    "float64",
    "from_numpy",
    "full",
    "full_like",
    "ge",
    "gt",
    "half",
    "initial_seed",
    "int",
    "int8",
    "int32",
    "int64",
    "launch",
    "le",
    "linspace",
    "log",
    "long",
    "lt",
    "manual_seed",
    "matmul",
    "max",
    "maximum",
    "mean",
    "min",
    "minimum",
    "mm",
    "mul",
    "multiprocessing",
    "ne",
    "neg",
    "ones",
    "ones_like",
    "pow",
    "rand",
    "rand_like",
    "randint",
    "randn",
    "randn_like",
    "randperm",
    "relu",
    "sigmoid",
    "sin",
    "softmax",
    "split",
    "sqrt",
    "stack",
    "sub",
    "sum",
    "tanh",
    "tensor",
    "tiled_column_major",
    "tiled_row_major",
    "uint8",
    "zeros",
    "zeros_like",
]

if not TYPE_CHECKING:
    # With this function in sight, a type checker would accept every attribute.
    def __getattr__(name: str) -> NoReturn:
        raise absent_in_torch(name, __all__, dir(Tensor))
