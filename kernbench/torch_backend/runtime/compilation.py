"""Which backends of `torch.compile` run on the device: those that call operators one by one."""

import functools
from collections.abc import Sequence
from typing import Any

import torch

from kernbench.torch_backend.aten.operators import DEVICE


def refuse_inductor() -> None:
    """Make the default backend of `torch.compile` an error for graphs on the device."""
    wrapper = torch._TorchCompileInductorWrapper  # noqa: SLF001 - what torch.compile makes of it
    compiled = wrapper.__call__

    @functools.wraps(compiled)
    def call(self: Any, model: Any, inputs: Sequence[Any]) -> Any:
        if any(isinstance(each, torch.Tensor) and each.device.type == DEVICE for each in inputs):
            raise NotImplementedError(
                f"the backend 'inductor' generates code for CPUs and GPUs, which {DEVICE!r} does "
                "not execute; torch.compile(..., backend='aot_eager') calls its operators"
            )
        return compiled(self, model, inputs)

    wrapper.__call__ = call
