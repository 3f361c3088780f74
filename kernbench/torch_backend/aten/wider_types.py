"""Operators on the host for types for which a CPU has no code and a GPU has: those of 16 bits are
computed in float32 and rounded once, integers of some operators in float64.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_flatten, tree_map

from kernbench.torch_backend.runtime.pytorch_api import OpOverload, parameters_of

_OF_INTEGERS = frozenset({"aten::histc", "aten::histc.out"})
"""Operators whose results have the type of their integers."""
_NARROW = frozenset({torch.float16, torch.bfloat16})
_LACKING = "not implemented for '"
"""A part of the error of a type for which there is no code."""


def computed(operator: OpOverload, given: Sequence[Any], options: dict[str, Any]) -> Any:
    """The results of an operator on the host, in the types of the operands; PyTorch's error if it
    has no code for wider types either.
    """
    try:
        return operator(*given, **options)
    except (NotImplementedError, RuntimeError) as error:
        types = _wider(operator, _tensors((given, options)))
        if _LACKING not in str(error) or types is None:
            raise
        try:
            return _computed_in(*types, operator, given, options)
        except (NotImplementedError, RuntimeError):
            raise error from None


def _wider(
    operator: OpOverload, operands: Sequence[Tensor]
) -> tuple[torch.dtype, torch.dtype] | None:
    """The type that a CPU lacks, and a wider one."""
    types = {each.dtype for each in operands}
    if str(operator.name()) in _OF_INTEGERS and len(types) == 1:
        (dtype,) = types
        if not (dtype.is_floating_point or dtype.is_complex):
            return dtype, torch.float64
    narrow = types & _NARROW
    if len(narrow) != 1:
        return None
    (dtype,) = narrow
    return dtype, torch.float32


def _computed_in(
    narrow: torch.dtype,
    wide: torch.dtype,
    operator: OpOverload,
    given: Sequence[Any],
    options: dict[str, Any],
) -> Any:
    arguments, keywords = tree_map(partial(_in_type, source=narrow, target=wide), (given, options))
    results = operator(*arguments, **keywords)
    written = dict[int, Tensor]()
    for index, each in enumerate(parameters_of(operator)):
        if each.is_written:
            target, source = (
                own[index] if index < len(own) else named.get(each.name)
                for own, named in ((given, options), (arguments, keywords))
            )
            for tensor, result in zip(_tensors(target), _tensors(source), strict=True):
                if tensor is not result:
                    written[id(result)] = tensor.resize_(result.shape).copy_(result)

    def narrowed(value: object) -> object:
        return written.get(id(value), _in_type(value, source=wide, target=narrow))

    return tree_map(narrowed, results)


def _in_type(value: Any, source: torch.dtype, target: torch.dtype) -> Any:
    is_of_source = isinstance(value, Tensor) and value.dtype == source
    return value.to(target) if is_of_source else value


def _tensors(values: Any) -> list[Tensor]:
    return [each for each in tree_flatten(values)[0] if isinstance(each, Tensor)]
