"""Operators without a kernel, or whose kernel declines: a formula of this package computes them, or
PyTorch's decomposition, or the host if neither can on the device.

A formula and a decomposition compute an operator by others of the device. They are functions
without effects, so an attempt may end at any place. An overload with results in `out`, and one that
changes its operand, is computed by its functional overload, whose results are copied. Operands of
16 bits are converted to float32, and the results are rounded once. Operators that draw random
numbers, and those that return views, are left to the host.
"""

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils._pytree import tree_flatten, tree_map

from kernbench.torch_backend.aten.attempts import (
    Attempt,
    AttemptEndedError,
    CircularAttemptError,
    attempting,
    is_attempted,
)
from kernbench.torch_backend.aten.operators import (
    CALLS,
    DECOMPOSED,
    LAUNCHES,
    Operator,
    name_of,
    on_host,
)
from kernbench.torch_backend.runtime.pytorch_api import (
    OpOverload,
    below_autograd,
    decomposition_of,
    functional_packet,
    is_random,
    overloads_of,
    parameters_of,
    returns_view,
    without_autocast,
)
from runtime.device.rank.rank_state import running_rank

FORMULAS: dict[str, Operator] = {}
"""Functions of tensors by the names of functional overloads, such as `prod.dim_int`. One returns
NotImplemented for operands that it does not compute."""
_OF_FLOATING_POINT = frozenset(
    {
        *("upsample_bilinear2d", "upsample_bilinear2d.vec", "upsample_bicubic2d"),
        *("upsample_bicubic2d.vec", "_upsample_bilinear2d_aa.vec", "_upsample_bicubic2d_aa.vec"),
    }
)
"""Operators whose decomposition has the results of a CPU for floating point alone: of bytes, a CPU
has weights of fixed point."""
_NARROW = (torch.float16, torch.bfloat16)
_OF_NARROW_TYPES: set[str] = set()
"""Formulas that round as PyTorch does in the types of their operands."""
_GIVEN_UP: dict[str, set[tuple[object, ...]]] = {}
"""Decompositions that ended without a result, with the types, shapes and numbers of their operands,
or the types alone where they are circular: the next such call loses no time in them."""
_ENDS = (AttemptEndedError, RuntimeError, ValueError, TypeError, IndexError, AssertionError)
"""The ends of an attempt. What PyTorch raises for operands that its decomposition does not take, a
CPU may compute; and where it does not, it raises the error that the program expects."""


class _FunctionalForm(NamedTuple):
    """An overload by its functional one, and the parameters whose tensors it writes: results, or
    an operand that it changes.
    """

    name: str
    functional: OpOverload
    written: tuple[tuple[int, str], ...]
    changes_operand: bool = False


def formula(*names: str, is_of_narrow_types: bool = False) -> Callable[[Operator], Operator]:
    """Add a function of tensors that computes operators; of operands of 16 bits itself, if it
    `is_of_narrow_types`.
    """

    def add(function: Operator) -> Operator:
        for name in names:
            FORMULAS[name] = function
            if is_of_narrow_types:
                _OF_NARROW_TYPES.add(name)
        return function

    return add


def without_kernel(operator: OpOverload, *given: Any, **options: Any) -> Any:
    """Compute an operator by the first stage that can."""
    form = _form_of(operator)
    if form is None:
        return on_host(operator, *given, **options)
    outs = set[str]() if form.changes_operand else {name for _, name in form.written}
    count = len(parameters_of(form.functional))
    arguments, keywords = (
        given[:count],
        {name: value for name, value in options.items() if name not in outs},
    )
    results = _computed(form, arguments, keywords)
    if results is NotImplemented:
        return on_host(operator, *given, **options)
    fresh = tree_map(partial(_apart, operands=_tensors((given, options))), results)
    return _copied(form, fresh, given, options) if form.written else fresh


def _computed(form: _FunctionalForm, given: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """The results of the formula or the decomposition; NotImplemented if neither has any."""
    of_formula = FORMULAS.get(form.name)
    if of_formula is not None:
        try:
            results = _attempted(of_formula, Attempt(form.name, False), given, options)
        except _ENDS:
            results = NotImplemented
        if results is not NotImplemented:
            CALLS[form.name] += 1
            return results
    decomposition = decomposition_of(form.functional)
    if decomposition is None:
        return NotImplemented
    return _decomposed(form.name, decomposition, given, options)


def _decomposed(
    name: str, decomposition: Operator, given: tuple[Any, ...], options: dict[str, Any]
) -> Any:
    tensors = _tensors((given, options))
    if name in _OF_FLOATING_POINT and not all(each.is_floating_point() for each in tensors):
        return NotImplemented
    types, signature = tuple(each.dtype for each in tensors), _signature(given, options)
    given_up = _GIVEN_UP.setdefault(name, set())
    if types in given_up or signature in given_up:
        return NotImplemented
    is_inner, before = is_attempted(), running_rank().launches
    try:
        results = _attempted(decomposition, Attempt(name, True), given, options)
    except _ENDS as end:
        given_up.add(types if isinstance(end, CircularAttemptError) else signature)
        return NotImplemented
    if not is_inner:
        DECOMPOSED[name] += 1
        LAUNCHES[name] += running_rank().launches - before
    return results


def _attempted(
    function: Operator, attempt: Attempt, given: tuple[Any, ...], options: dict[str, Any]
) -> Any:
    is_own_type = not attempt.is_decomposition and attempt.operator in _OF_NARROW_TYPES
    narrow = None if is_own_type else _narrow_type((given, options))
    if narrow is not None:
        given, options = tree_map(_widened, (given, options))
    with attempting(attempt), without_autocast(), below_autograd():
        results = function(*given, **options)
        if narrow is None or options.get("dtype") is not None or results is NotImplemented:
            return results
        return tree_map(partial(_narrowed, dtype=narrow), results)


@cache
def _form_of(operator: OpOverload) -> _FunctionalForm | None:
    """The form of an overload; None if it is left to the host."""
    if is_random(operator) or returns_view(operator):
        return None
    parameters = parameters_of(operator)
    written = [(index, each.name) for index, each in enumerate(parameters) if each.is_written]
    if not written:
        return _FunctionalForm(name_of(operator), operator, ())
    outs = [each for each in parameters if each.is_out]
    kept = [each for each in parameters if not each.is_out]
    # One that changes its operand has a functional packet without the underscore.
    packet = operator.overloadpacket
    if not outs:
        packet = functional_packet(operator)
        kept = [each._replace(is_written=False) for each in kept]
    if len(written) != max(1, len(outs)):
        return None
    for each in overloads_of(packet):
        if parameters_of(each) == kept:
            return _FunctionalForm(name_of(each), each, tuple(written), changes_operand=not outs)
    return None


def _tensors(values: Any) -> list[Tensor]:
    return [each for each in tree_flatten(values)[0] if isinstance(each, Tensor)]


def _signature(given: Sequence[Any], options: dict[str, Any]) -> tuple[object, ...]:
    return tuple(
        (each.dtype, each.shape) if isinstance(each, Tensor) else repr(each)
        for each in tree_flatten((given, options))[0]
    )


def _narrow_type(values: Any) -> torch.dtype | None:
    """The type of 16 bits of all operands of floating point, if they have one."""
    types = {each.dtype for each in _tensors(values) if each.is_floating_point()}
    (dtype,) = types if len(types) == 1 else (None,)
    return dtype if dtype in _NARROW else None


def _widened(value: Any) -> Any:
    is_narrow = isinstance(value, Tensor) and value.dtype in _NARROW
    return value.float() if is_narrow else value


def _narrowed(value: Any, dtype: torch.dtype) -> Any:
    is_wide = isinstance(value, Tensor) and value.dtype == torch.float32
    return value.to(dtype) if is_wide else value


def _apart(value: Any, operands: Sequence[Tensor]) -> Any:
    """A result with memory of its own, without an element that is several."""
    if not isinstance(value, Tensor):
        return value
    is_repeated = any(
        by == 0 and length > 1 for by, length in zip(value.stride(), value.shape, strict=True)
    )
    if is_repeated:
        return value.contiguous()
    pointer = value.untyped_storage().data_ptr()
    is_shared = any(each.untyped_storage().data_ptr() == pointer for each in operands)
    return value.clone() if is_shared and value.numel() else value


def _copied(
    form: _FunctionalForm, results: Any, given: Sequence[Any], options: dict[str, Any]
) -> Any:
    """Copy results to the tensors that the overload writes, which it returns."""
    targets = [
        given[index] if index < len(given) else options[name] for index, name in form.written
    ]
    for target, result in zip(targets, _tensors(results), strict=True):
        if not torch.can_cast(result.dtype, target.dtype):
            raise RuntimeError(
                f"{form.name}: the result has the type {result.dtype}, which cannot be cast to "
                f"that of its tensor, {target.dtype}"
            )
        if target.shape != result.shape:
            if form.changes_operand:
                raise RuntimeError(
                    f"{form.name}: an operand of shape {list(target.shape)} cannot hold the result "
                    f"of shape {list(result.shape)}"
                )
            target.resize_(result.shape)
        target.copy_(result)
    return targets[0] if len(targets) == 1 else tuple(targets)
