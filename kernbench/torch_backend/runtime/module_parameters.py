"""Parameters of modules that move to the device keep their identity, as on GPUs."""

import functools
from typing import Any

import torch
from torch import nn


def keep_parameters() -> None:
    """Let `Module.to` and such swap the contents of parameters.

    Else PyTorch makes new ones, since elements of a CPU cannot be set to those of such a device:
    optimisers would not have them, and layers that share a weight would have one each. PyTorch's
    own switch for it would also hold for `load_state_dict`, which copies on all devices, and refuse
    parameters there that have weak references.
    """
    convert = nn.Module._apply  # noqa: SLF001 - to, cpu, double, to_empty call it

    @functools.wraps(convert)
    def converted(self: nn.Module, *given: Any, **options: Any) -> nn.Module:
        flags = torch.__future__
        before = flags.get_swap_module_params_on_conversion()
        flags.set_swap_module_params_on_conversion(True)
        try:
            return convert(self, *given, **options)
        finally:
            flags.set_swap_module_params_on_conversion(before)

    nn.Module._apply = converted  # noqa: SLF001
