"""The fused optimisers SGD, Adam and AdamW: one launch for a list of parameters.

A parameter, its gradient and its state are read once and written once. The bias corrections of Adam
are computed from the step, which PyTorch keeps on the device, in float64. The scale of a
`GradScaler` divides the gradients, and where it has found an infinity, nothing changes. Its own
operators divide gradients by the scale, check them, and update the scale.
"""

from collections.abc import Callable, Sequence
from functools import partial
from math import log2
from typing import Any

import torch
from torch import Tensor

from kernbench.torch_backend.aten.operators import DEVICE, operator
from kernbench.torch_backend.launching.launches import launch_updates
from kernbench.torch_backend.runtime.element_types import computed_in, hardware_type
from kernbench.torch_backend.runtime.pytorch_api import zero_each
from runtime.core.dtypes import DType
from runtime.device.kernels.pointwise import Factors, Update
from runtime.language import tl
from runtime.language.value import Value

Tensors = Sequence[Tensor]
_CORRECTIONS = 2
"""The factors that follow from a step."""
_GRADIENT = 1
"""The number of the gradient among the tensors of a row."""


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
        if any(each.device.type != DEVICE for each in steps):
            return NotImplemented
        states = [means, squares, *([max_squares] if max_squares else [])]
        rate, betas = _number(options["lr"]), (options["beta1"], options["beta2"])
        function = partial(
            _adam_step,
            rate=rate,
            betas=betas,
            decay=options["weight_decay"],
            eps=options["eps"],
            sign=-1.0 if options["maximize"] else 1.0,
            decoupled=decoupled,
        )
        lists = [params, grads, *states]
        corrections = partial(_corrections, rate=rate, betas=betas)
        return _launched(name, function, lists, options, (steps, corrections))

    del step


for _name, _decoupled in (("_fused_adam_", False), ("_fused_adamw_", True)):
    _adam(_name, decoupled=_decoupled)


@operator("_fused_sgd_", "_fused_sgd_.tensor_lr")
def _sgd(params: Tensors, grads: Tensors, buffers: Tensors, **options: Any) -> Any:
    momentum = options["momentum"] if buffers else 0.0
    function = partial(
        _sgd_step,
        rate=_number(options["lr"]),
        decay=options["weight_decay"],
        momentum=momentum,
        # The first gradient becomes the momentum, undamped.
        keeps=not options["is_first_step"],
        damping=0.0 if options["is_first_step"] else options["dampening"],
        nesterov=options["nesterov"],
        sign=-1.0 if options["maximize"] else 1.0,
    )
    states = [buffers] if momentum else []
    if momentum and options["is_first_step"] and options.get("found_inf") is not None:
        # PyTorch has not set them, and they are kept where an infinity is found.
        zero_each(buffers)
    return _launched("_fused_sgd_", function, [params, grads, *states], options)


def _number(rate: float | Tensor) -> float:
    return float(rate.item() if isinstance(rate, Tensor) else rate)


def _launched(
    name: str,
    function: Update,
    lists: Sequence[Tensors],
    options: dict[str, Any],
    counted: tuple[Tensors, Callable[..., tuple[Value, ...]]] | None = None,
) -> Any:
    """Update the parameters and the states, the lists behind the gradients. With the steps
    `counted`, their function gives factors, which are operands behind the states.
    """
    if not lists[0]:
        return None
    types = {each.dtype for listed in lists for each in listed}
    rows = [list(row) for row in zip(*lists, strict=True)]
    used = [(row[0].stride(), each) for row in rows for each in row]
    if len(types) > 1 or any(
        each.stride() != stride or each.device.type != DEVICE for stride, each in used
    ):
        return NotImplemented
    written = [0, *range(_GRADIENT + 1, len(lists))]
    inner, factors = computed_in(*types), None
    if counted is not None:
        steps, function_of_step = counted
        rows = [[*row, step] for row, step in zip(rows, steps, strict=True)]
        function_of_step = partial(function_of_step, dtype=hardware_type(inner))
        factors = Factors(len(lists), function_of_step, _CORRECTIONS)
    scale, inf = options.get("grad_scale"), options.get("found_inf")
    function = _scaled(function, written, has_scale=scale is not None, has_found=inf is not None)
    added = [each for each in (scale, inf) if each is not None]
    if any(each.device.type != DEVICE for each in added):
        return NotImplemented
    if scale is not None:
        # PyTorch leaves the gradients divided by the scale.
        written.append(_GRADIENT)
    rows = [[*row, *added] for row in rows]
    launch_updates(name, function, rows, tuple(written), inner, factors)
    return None


def _scaled(
    function: Update, written: Sequence[int], *, has_scale: bool, has_found: bool
) -> Update:
    """The function of gradients that are divided by the scale behind its operands; the number
    behind that is not 0 where nothing shall change.
    """
    states = tuple(written)

    def update(*given: Value) -> tuple[Value, ...]:
        values = list(given)
        overflow = values.pop() if has_found else None
        results = list[Value]()
        if has_scale:
            scale = values.pop()
            before = [*(values[each] for each in states), values[_GRADIENT]]
            values[_GRADIENT] = values[_GRADIENT] / scale
            results = [values[_GRADIENT]]
        else:
            before = [values[each] for each in states]
        results = [*function(*values), *results]
        if overflow is None:
            return tuple(results)
        is_kept = overflow != 0
        return tuple(tl.where(is_kept, old, new) for old, new in zip(before, results, strict=True))

    return update


def _corrections(
    step: Value, *, rate: float, betas: tuple[float, float], dtype: DType
) -> tuple[Value, Value]:
    """The rate over the bias correction of the mean, and the reciprocal root of that of the
    square. Near 1 the difference has few digits, so it is computed in float64: apart from the
    chain of a block, which has half as many elements in a vector beside a number of 8 bytes.
    """
    wide = step.to(tl.float64)
    first, second = (1.0 - tl.exp2(wide * log2(beta)) if beta else wide * 0 + 1.0 for beta in betas)
    return (rate / first).to(dtype), (1.0 / tl.sqrt(second)).to(dtype)


def _adam_step(
    param: Value,
    grad: Value,
    mean: Value,
    square: Value,
    *rest: Value,
    rate: float,
    betas: tuple[float, float],
    decay: float,
    eps: float,
    sign: float,
    decoupled: bool,
) -> tuple[Value, ...]:
    """The parameter and the moments after a step (I. Loshchilov, F. Hutter, "Decoupled weight
    decay regularization", 2019, algorithm 2); `rest` are the corrections, behind the greatest
    second moment so far if AMSGrad divides by that.
    """
    *greatest, size, root = rest
    first, second = betas
    if sign != 1:
        grad = grad * sign
    if decay and not decoupled:
        grad = tl.fma(param, decay, grad)
    mean = tl.fma(grad - mean, 1 - first, mean)
    square = tl.fma(grad * grad, 1 - second, square * second)
    greatest = [tl.maximum(each, square) for each in greatest]
    divisor = tl.fma(tl.sqrt(greatest[0] if greatest else square), root, eps)
    move = mean * size / divisor
    if decay and decoupled:
        param = param * (1 - rate * decay)
    return param - move, mean, square, *greatest


def _sgd_step(
    param: Value,
    grad: Value,
    *buffers: Value,
    rate: float,
    decay: float,
    momentum: float,
    keeps: bool,
    damping: float,
    nesterov: bool,
    sign: float,
) -> tuple[Value, ...]:
    """The parameter and its momentum, if it has one, after a step (I. Sutskever et al., "On the
    importance of initialization and momentum in deep learning", 2013).
    """
    if sign != 1:
        grad = grad * sign
    if decay:
        grad = grad + param * decay
    # A chain stores what it computes: a result is no operand itself.
    added = grad * (1 - damping)
    buffers = tuple(each * momentum + added if keeps else added for each in buffers)
    move = grad
    if buffers:
        move = grad + buffers[0] * momentum if nesterov else buffers[0]
    return param - move * rate, *buffers


@operator("_amp_foreach_non_finite_check_and_unscale_")
def _unscale(gradients: Sequence[Tensor], found_inf: Tensor, inverse: Tensor) -> None:
    for each in gradients:
        # The difference of an element with itself is 0, or NaN if it is not finite.
        is_infinite = ((each - each) != 0).any()
        found_inf.copy_(torch.maximum(found_inf, is_infinite.to(found_inf.dtype)))
        each.mul_(inverse)


@operator("_amp_update_scale_", types=None)
def _update_scale(
    scale: Tensor,
    growth: Tensor,
    found_inf: Tensor,
    growth_factor: float,
    backoff_factor: float,
    interval: int,
) -> Tensor:
    is_infinite, following = found_inf > 0, growth + 1
    is_grown = following == interval
    grown = torch.where(is_grown, scale * growth_factor, scale)
    scale.copy_(torch.where(is_infinite, scale * backoff_factor, grown))
    growth.copy_(torch.where(is_infinite | is_grown, 0, following))
    return scale
