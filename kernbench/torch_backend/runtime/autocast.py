"""Automatic mixed precision: which operators autocast lowers to its type, and which it widens.

The lists are those of PyTorch's autocast for GPUs, of the operators that models of transformers
call; other operators keep the types of their operands.
"""

from typing import Any

import torch
from torch.utils._pytree import tree_map

from kernbench.torch_backend.runtime.pytorch_api import (
    DEVICE,
    fall_back,
    implement,
    without_autocast,
)

_KEY = "AutocastPrivateUse1"
_LOWERED = (
    *("linear", "matmul", "mm", "mv", "addmm", "addmv", "bmm", "baddbmm", "einsum"),
    *("conv1d", "conv2d", "conv3d", "scaled_dot_product_attention"),
)
_WIDENED = (
    *("exp", "log", "log2", "rsqrt", "pow.Tensor_Scalar", "layer_norm", "native_layer_norm"),
    *("softmax.int", "log_softmax.int", "nll_loss", "mse_loss", "cross_entropy_loss"),
    *("cumsum", "sum", "sum.dim_IntList", "norm.Scalar", "binary_cross_entropy_with_logits"),
)


def register_autocast(aten: torch.library.Library, everything: torch.library.Library) -> None:
    """Add the rules to two libraries, of the operators and of all namespaces."""
    fall_back(everything, torch.library.fallthrough_kernel, _KEY)
    for name in _LOWERED:
        implement(aten, name, _in_type(name, None), _KEY)
    for name in _WIDENED:
        implement(aten, name, _in_type(name, torch.float32), _KEY)


def _in_type(name: str, dtype: torch.dtype | None) -> Any:
    packet, _, overload = name.partition(".")
    operator = getattr(getattr(torch.ops.aten, packet), overload or "default")

    def call(*given: Any, **options: Any) -> Any:
        target = dtype or torch.get_autocast_dtype(DEVICE)

        def cast(value: Any) -> Any:
            is_eligible = (
                isinstance(value, torch.Tensor)
                and value.is_floating_point()
                and value.device.type == DEVICE
                and value.dtype != torch.float64
            )
            return value.to(target) if is_eligible else value

        arguments, keywords = tree_map(cast, (list(given), options))
        with without_autocast():
            return operator(*arguments, **keywords)

    return call
