"""Results of operators on integers that are known to the host, in a run without data.

An operator of the device on known integers alone has a known result: PyTorch computes it on the
host as well, in no simulated time. The result of any other one is not known.
"""

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any, cast

import torch
from torch import Tensor
from torch.utils._pytree import tree_flatten, tree_map

from kernbench.torch_backend.runtime.known_integers import (
    KnownIntegers,
    Later,
    NoDataError,
    is_integer,
    when_all,
)
from kernbench.torch_backend.runtime.pytorch_api import (
    DEVICE,
    OpOverload,
    SchemaParameter,
    is_random,
    parameters_of,
)
from kernbench.torch_backend.runtime.storages import storages

Operator = Callable[..., Any]
Written = Sequence[tuple[int, str]]
COPIES = frozenset({"_copy_from", "_copy_from_and_resize", "_local_scalar_dense"})
"""Operators that keep the elements which they move themselves."""
_FILLS = frozenset({"fill_.Scalar", "fill_.Tensor", "zero_"})
"""Operators in place that do not read the tensor which they write."""
_OF_HOST = frozenset({"_embedding_bag", "_embedding_bag_forward_only"})
"""Operators whose results of integers are copied from the host."""


def following(name: str, operator: OpOverload, call: Operator, known: KnownIntegers) -> Operator:
    """`call`, the function of an operator on the device, which keeps `known`. A `NoDataError` in it
    names the operator.
    """
    parameters = parameters_of(operator)
    if name in _FILLS:
        first = parameters[0]._replace(is_out=True)
        parameters = [first, *parameters[1:]]
    written = [
        (index, parameter.name)
        for index, parameter in enumerate(parameters)
        if parameter.is_written
    ]
    follows = not is_random(operator) and name not in _OF_HOST

    def followed(*given: Any, **options: Any) -> Any:
        before = _on_host(parameters, given, options, known) if follows else None
        # Now, since the call may write its operands.
        host_call = None if before is None else _HostCall(operator, written, *before)
        try:
            result = call(*given, **options)
        except NoDataError as error:
            raise NoDataError(name, *error.args[1:]) from None
        if follows:
            outputs = _tensors([_targets(written, given, options), result])
            _note(outputs, host_call, known)
        return result

    return followed


def note_result(out: Tensor, operand: Tensor, function: Callable[[Tensor], Tensor]) -> None:
    """`out`, which no operator of PyTorch has written, is `function` of an operand."""
    known = storages().integers
    if known is None:
        return
    elements = known.elements(operand)
    if isinstance(elements, Later):
        later = elements
        elements = when_all([later], lambda: _of_known(function, later.elements))
    else:
        elements = _of_known(function, elements)
    known.write(out, elements)


def _of_known(function: Callable[[Tensor], Tensor], elements: Tensor | None) -> Tensor | None:
    return None if elements is None else function(elements)


class _HostCall:
    """A call of an operator with elements of the host; `written` are the positions and names of the
    arguments that it writes. It refers to no tensor of the device, whose memory it would keep.
    """

    def __init__(
        self,
        operator: OpOverload,
        written: Written,
        given: Sequence[Any],
        options: dict[str, Any],
    ) -> None:
        self._operator, self._written = operator, written
        self.later = [each for each in tree_flatten((given, options))[0] if isinstance(each, Later)]
        self._given, self._options = given, options
        if self.later:
            # Operands may be written before the call is computed.
            self._given, self._options = tree_map(_cloned, (given, options))
        else:
            self.results  # noqa: B018 - computes them

    @cached_property
    def results(self) -> list[Tensor] | None:
        """The written arguments and the results; None if an argument is not known, and where
        PyTorch refuses the call.
        """
        if any(each.elements is None for each in self.later):
            return None
        given, options = tree_map(_settled, (self._given, self._options))
        try:
            result = self._operator(*given, **options)
        except (RuntimeError, ValueError, TypeError, IndexError):
            # The kernel of the device raises its own error, or its result is not known.
            return None
        return _tensors([_targets(self._written, given, options), result])

    def result(self, number: int) -> Tensor | None:
        """One of the results."""
        return None if self.results is None else self.results[number]


def _cloned(value: Any) -> Any:
    return value.clone() if isinstance(value, Tensor) else value


def _settled(value: Any) -> Any:
    # A copy, since the operator may write it.
    if isinstance(value, Later):
        assert value.elements is not None, "the caller has tested it"
        return value.elements.clone()
    return value


def _targets(written: Written, given: Sequence[Any], options: dict[str, Any]) -> list[Any]:
    """The written arguments."""
    return [given[index] if index < len(given) else options.get(name) for index, name in written]


def _on_host(
    parameters: Sequence[SchemaParameter],
    given: Sequence[Any],
    options: dict[str, Any],
    known: KnownIntegers,
) -> tuple[list[Any], dict[str, Any]] | None:
    """The arguments with the elements of the host, copies of those that the operator writes; None
    if one of them is not known.
    """
    by_name = {parameter.name: parameter for parameter in parameters}
    positional = list[Any]()
    for value, parameter in zip(given, parameters, strict=False):
        mirrored = _mirrored(value, parameter, known)
        if mirrored is None and value is not None:
            return None
        positional.append(mirrored)
    named = dict[str, Any]()
    for name, value in options.items():
        mirrored = _mirrored(value, by_name[name], known)
        if mirrored is None and value is not None:
            return None
        named[name] = torch.device("cpu") if isinstance(value, torch.device) else mirrored
    return positional, named


def _mirrored(value: Any, parameter: SchemaParameter, known: KnownIntegers) -> Any:
    if isinstance(value, list | tuple):
        values = cast(Sequence[Any], value)
        items = [_mirrored(each, parameter, known) for each in values]
        is_unknown = any(
            item is None and each is not None for item, each in zip(items, values, strict=True)
        )
        return None if is_unknown else items
    if not isinstance(value, Tensor):
        # PyTorch passes a number in place of some tensors.
        is_number = parameter.is_tensor and isinstance(value, bool | int | float)
        return torch.tensor(value) if is_number else value
    if value.device.type != DEVICE:
        return value.clone() if parameter.is_written else value
    if parameter.is_out:
        # PyTorch resizes what it writes by keyword; what it fills keeps its shape.
        shape = value.shape if parameter.name == "self" else (0,)
        return torch.empty(shape, dtype=value.dtype) if is_integer(value) else None
    elements = known.elements(value)
    if isinstance(elements, Tensor) and parameter.is_written:
        return elements.clone()
    return elements


def _note(outputs: list[Tensor], call: _HostCall | None, known: KnownIntegers) -> None:
    """Write the elements of the outputs of an operator, or that they are not known."""
    if call is None or not any(map(is_integer, outputs)):
        for each in outputs:
            known.write(each, None)
        return
    for number, each in enumerate(outputs):
        if each.device.type == DEVICE:
            compute = partial(call.result, number)
            known.write(each, when_all(call.later, compute) if call.later else compute())


def _tensors(values: Any) -> list[Tensor]:
    return [each for each in tree_flatten(values)[0] if isinstance(each, Tensor)]
