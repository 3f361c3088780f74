"""Operators on lists of tensors, which optimisers call: one launch for a list.

The tensors of a list have one element type; other lists run on the host, counted.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from kernbench.torch_backend.aten.elements.pointwise_operators import OperandFunction, bound_to
from kernbench.torch_backend.aten.operators import DEVICE, operator
from kernbench.torch_backend.launching.launches import launch_pointwise_each
from kernbench.torch_backend.runtime.element_types import computed_in
from runtime.device.kernels.pointwise import Function
from runtime.language import tl
from runtime.language.value import Value

Tensors = Sequence[Tensor]
Numbers = float | Sequence[float] | Tensor


def _compute(
    name: str,
    function: OperandFunction,
    lists: Sequence[Tensors],
    outs: Tensors,
    numbers: Sequence[float] = (),
) -> Any:
    """Write `function` of corresponding tensors of lists and of `numbers` to those of `outs`."""
    if any(each.device.type != DEVICE for listed in (*lists, outs) for each in listed):
        return NotImplemented
    types = {each.dtype for listed in (*lists, outs) for each in listed}
    shapes = zip(*lists, outs, strict=True)
    if len(types) != 1 or any(
        len({each.shape for each in row if each.dim()}) > 1 for row in shapes
    ):
        return NotImplemented
    operands = zip(*lists, strict=True)
    results = [(out, tuple(row)) for out, row in zip(outs, operands, strict=True)]
    of_tensors = bound_to([*[None] * len(lists), *numbers], function)
    launch_pointwise_each(name, of_tensors, results, computed_in(*types))
    return outs


def _with_numbers(
    name: str, function: OperandFunction, lists: Sequence[Tensors], numbers: Numbers, outs: Tensors
) -> Any:
    """`_compute` with a number behind the tensors: one for all, or one for each."""
    if not outs[0].is_floating_point():
        return NotImplemented
    if isinstance(numbers, Tensor):
        if numbers.dim() or numbers.dtype != outs[0].dtype:
            return NotImplemented
        # One element for all tensors: on the device it is broadcast, from the host it is a number.
        if numbers.device.type == DEVICE:
            return _compute(name, function, [*lists, [numbers] * len(outs)], outs)
        numbers = numbers.item()
    if not isinstance(numbers, Sequence):
        return _compute(name, function, lists, outs, [float(numbers)])
    for index, number in enumerate(numbers):
        row = [[listed[index]] for listed in lists]
        computed = _with_numbers(name, function, row, float(number), [outs[index]])
        if computed is NotImplemented:
            return NotImplemented
    return outs


def _register(
    name: str,
    lists: int,
    function: OperandFunction,
    *,
    numbers: bool,
    in_place: bool,
    default: Any = None,
) -> None:
    """Add an operator with `lists` lists of tensors, and with `numbers` a number or numbers."""

    @operator(name)
    def of_lists(*given: Any, **options: Any) -> Any:
        tensors = given[:lists]
        outs = tensors[0] if in_place else [torch.empty_like(each) for each in tensors[0]]
        if not outs:
            return None if in_place else []
        if numbers:
            rest = [*given[lists:], *options.values()]
            number = rest[0] if rest else default
            done = _with_numbers(name, function, tensors, number, outs)
        else:
            done = _compute(name, function, tensors, outs)
        if done is NotImplemented:
            return NotImplemented
        return None if in_place else outs

    del of_lists


def _scaled_sum(x: Value, y: Value, alpha: float) -> Value:
    return x + y if alpha == 1 else x + y * alpha


def _scaled_difference(x: Value, y: Value, alpha: float) -> Value:
    return x - y if alpha == 1 else x - y * alpha


_WITH_NUMBERS: dict[str, tuple[int, OperandFunction, tuple[str, ...]]] = {
    "add": (1, tl.add, ("Scalar", "ScalarList")),
    "sub": (1, tl.sub, ("Scalar", "ScalarList")),
    "mul": (1, tl.mul, ("Scalar", "ScalarList", "Tensor")),
    "div": (1, tl.div, ("Scalar", "ScalarList", "Tensor")),
    "lerp": (2, lambda x, end, weight: x + (end - x) * weight, ("Scalar",)),
    "addcmul": (3, lambda x, a, b, by: x + a * b * by, ("Scalar", "ScalarList")),
    "addcdiv": (3, lambda x, a, b, by: x + a / b * by, ("Scalar", "ScalarList")),
}
_OF_TENSORS: dict[str, Function] = {
    "sqrt": tl.sqrt,
    "neg": lambda x: x * -1.0,
    "reciprocal": lambda x: 1.0 / x,
    "abs": tl.abs,
    "exp": tl.exp,
}

for _suffix, _in_place in (("", False), ("_", True)):
    for _name, (_lists, _function, _overloads) in _WITH_NUMBERS.items():
        for _overload in _overloads:
            _register(
                f"_foreach_{_name}{_suffix}.{_overload}",
                _lists,
                _function,
                numbers=True,
                in_place=_in_place,
                default=1,
            )
    for _name, _function in _OF_TENSORS.items():
        _register(f"_foreach_{_name}{_suffix}", 1, _function, numbers=False, in_place=_in_place)
    for _name, _function in (("add", _scaled_sum), ("sub", _scaled_difference)):
        _register(
            f"_foreach_{_name}{_suffix}.List",
            2,
            _function,
            numbers=True,
            in_place=_in_place,
            default=1,
        )
    for _name, _function in (("mul", tl.mul), ("div", tl.div), ("maximum", tl.maximum)):
        _register(
            f"_foreach_{_name}{_suffix}.List", 2, _function, numbers=False, in_place=_in_place
        )
