"""The fused optimisers Adam and AdamW: one launch for a list of parameters.

A parameter, its gradient and both moments are read once and written once. The bias corrections
are computed from the step, which PyTorch keeps on the device, in float64.
"""

from collections.abc import Sequence
from functools import partial
from math import log2
from typing import Any

import torch

from kernbench.torch_backend.element_types import computed_in
from kernbench.torch_backend.launches import launch_updates
from kernbench.torch_backend.operators import DEVICE, operator
from runtime.language import tl
from runtime.language.value import Value

Tensors = Sequence[torch.Tensor]


def _adam(name: str, *, decoupled: bool) -> None:
    @operator(name)
    def step(
        params: Tensors,
        grads: Tensors,
        means: Tensors,
        squares: Tensors,
        max_squares: Tensors,
        steps: Tensors,
        **options: Any,
    ) -> Any:
        lists = (params, grads, means, squares)
        scale, found = options.get("grad_scale"), options.get("found_inf")
        if max_squares or scale is not None or found is not None or not params:
            return NotImplemented
        types = {each.dtype for listed in lists for each in listed}
        if len(types) > 1 or any(each.device.type != DEVICE for each in steps):
            return NotImplemented
        if any(
            row[0].stride() != each.stride() for row in zip(*lists, strict=True) for each in row
        ):
            return NotImplemented
        rate = options["lr"]
        factor = float(rate.item() if isinstance(rate, torch.Tensor) else rate)
        function = partial(
            _updated,
            rate=factor,
            betas=(options["beta1"], options["beta2"]),
            decay=options["weight_decay"],
            eps=options["eps"],
            sign=-1.0 if options["maximize"] else 1.0,
            decoupled=decoupled,
        )
        rows = zip(*lists, steps, strict=True)
        launch_updates(name, function, list(rows), (0, 2, 3), computed_in(*types))
        return None

    del step


for _name, _decoupled in (("_fused_adam_", False), ("_fused_adamw_", True)):
    _adam(_name, decoupled=_decoupled)


def _correction(step: Value, beta: float) -> Value:
    """1 - beta^step, in float64: near 1 the difference has few digits."""
    return (
        1.0 - tl.exp2(step.to(tl.float64) * log2(beta)) if beta else step.to(tl.float64) * 0 + 1.0
    )


def _updated(
    param: Value,
    grad: Value,
    mean: Value,
    square: Value,
    step: Value,
    *,
    rate: float,
    betas: tuple[float, float],
    decay: float,
    eps: float,
    sign: float,
    decoupled: bool,
) -> tuple[Value, Value, Value]:
    """The parameter and both moments after a step (I. Loshchilov, F. Hutter, "Decoupled weight
    decay regularization", 2019, algorithm 2).
    """
    first, second = betas
    if sign != 1:
        grad = grad * sign
    if decay and decoupled:
        param = param * (1 - rate * decay)
    elif decay:
        grad = grad + param * decay
    mean = mean + (grad - mean) * (1 - first)
    square = square * second + grad * grad * (1 - second)
    size = (rate / _correction(step, first)).to(param.dtype)
    root = (1.0 / tl.sqrt(_correction(step, second))).to(param.dtype)
    return param - mean * size / (tl.sqrt(square) * root + eps), mean, square
