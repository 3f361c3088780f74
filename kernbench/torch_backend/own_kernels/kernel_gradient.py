"""The gradient of an operator that is a kernel: PyTorch derives it from a reference in its own
operators, which computes the results once more.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

Reference = Callable[..., Tensor | tuple[Tensor, ...]]
"""The results of a kernel, by operators of PyTorch."""


class ReferenceGradient:
    """The two functions of `CustomOpDef.register_autograd` for a reference."""

    def __init__(self, reference: Reference) -> None:
        self._reference = reference

    def kept(self, ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Keep the arguments of a call: tensors by PyTorch, which frees them."""
        del output
        ctx.others = [None if isinstance(each, Tensor) else each for each in inputs]
        ctx.positions = [at for at, each in enumerate(inputs) if isinstance(each, Tensor)]
        ctx.save_for_backward(*(inputs[at] for at in ctx.positions))

    def computed(self, ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        """The gradients of all arguments, None for those that need none."""
        # A gradient of the gradient needs the graph of the tensors themselves.
        has_graph = torch.is_grad_enabled()
        given, needed = list(ctx.others), dict[int, Tensor]()
        for position, tensor in zip(ctx.positions, ctx.saved_tensors, strict=True):
            is_needed = ctx.needs_input_grad[position]
            given[position] = tensor if has_graph else tensor.detach().requires_grad_(is_needed)
            if is_needed:
                needed[position] = given[position]
        with torch.enable_grad():
            results = self._reference(*given)
            pairs = [
                (result, grad)
                for result, grad in zip(listed(results), grads, strict=True)
                if grad is not None and result.requires_grad
            ]
            computed = torch.autograd.grad(
                [result for result, _ in pairs],
                list(needed.values()),
                [grad for _, grad in pairs],
                create_graph=has_graph,
                allow_unused=True,
            )
        of_argument = dict(zip(needed, computed, strict=True))
        return tuple(of_argument.get(at) for at in range(len(given)))


def listed(results: Tensor | tuple[Tensor, ...]) -> list[Tensor]:
    """The results of a call, of which one stands alone."""
    return [results] if isinstance(results, Tensor) else list(results)
