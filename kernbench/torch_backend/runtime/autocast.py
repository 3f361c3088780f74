"""Automatic mixed precision: which operators autocast lowers to its type, and which it widens.

The lists are those of PyTorch's autocast for GPUs, of the operators that models of transformers
call; other operators keep the types of their operands.
"""

from typing import Any

import torch
from torch.utils._pytree import tree_map

from kernbench.torch_backend.aten.operators import DEVICE

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
    everything.fallback(torch.library.fallthrough_kernel, _KEY)
    for name in _LOWERED:
        aten.impl(name, _in_type(name, None), _KEY)
    for name in _WIDENED:
        aten.impl(name, _in_type(name, torch.float32), _KEY)


def _in_type(name: str, dtype: torch.dtype | None) -> Any:
    packet, _, overload = name.partition(".")
    operator = getattr(getattr(torch.ops.aten, packet), overload or "default")
    keys = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastPrivateUse1)  # noqa: SLF001 - as PyTorch's own tests do

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
        with torch._C._ExcludeDispatchKeyGuard(keys):  # noqa: SLF001
            return operator(*arguments, **keywords)

    return call
