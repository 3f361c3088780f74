"""Selections by a mask, exactly: the elements of masks that follow from integers alone.

The table of calls has the integers of operations, and the steps of chains. So the elements of a
mask are computed here as the vector engine computes them, without data, if all that it depends on
is `arange`, numbers and operations on both. It is computed where a selection reads undefined
elements, which few programs do.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernbench.explain.check.accesses import Accessor
from kernbench.explain.check.block_tables import CallBlock
from kernbench.explain.check.geometry import RowLayout
from kernbench.explain.check.moves import ElementMask
from kernbench.explain.check.run_calls import CallRow, SipCalls
from kernbench.explain.check.undefined_ranges import UndefinedOrigin
from runtime.core.dtypes import BY_NAME
from runtime.core.run_tables import BlockAccess as Use
from runtime.language.functions import COMPARISONS, ELEMENTWISE
from runtime.language.operations import compute

Array = NDArray[Any]
_OPERANDS = {name: each.operands for name, each in (ELEMENTWISE | COMPARISONS).items()} | {
    "arange": 2,
    "full": 1,
    "where": 3,
    "cast": 1,
    "trans": 1,
}
"""The operands of the operations that are followed; a call with fewer has some that are floats."""


class StepOperand(NamedTuple):
    """An operand: the value of a number, with the shape in which it is used, an integer, or, if it
    has neither, a number that is not recorded.
    """

    value: int | None = None
    shape: tuple[int, ...] | None = None
    integer: int | None = None


class SelectionStep(NamedTuple):
    """An operation whose result has a shape and a type; `axis` is that of a reduction."""

    name: str
    operands: tuple[StepOperand, ...]
    dtype: str
    shape: tuple[int, ...]
    axis: int | None = None
    keeps_dims: bool = False


class ElementStates(NamedTuple):
    """The elements of a value: those that are undefined, with their origin, and all of them, if
    they follow from integers.
    """

    undefined: ElementMask
    origin: UndefinedOrigin | None
    elements: Array | None


class StepOutcome(NamedTuple):
    """The states of the values of steps; the origin of what a step uses in vain, and that of what a
    selection may have selected.
    """

    values: list[ElementStates]
    used: UndefinedOrigin | None
    noted: UndefinedOrigin | None


def steps_of(
    row: CallRow, reads: Sequence[CallBlock], writes: Sequence[CallBlock]
) -> tuple[tuple[SelectionStep, ...], tuple[int, ...]]:
    """The steps of a call of the vector engine, and the numbers of the values that it writes; none
    if they are not recorded.
    """
    if row.operation == "chain":
        return _chain(row.form) if row.form else ((), ())
    if not row.operation.startswith("math ") or len(writes) != 1:
        return (), ()
    name, operands = row.operation.removeprefix("math "), list[StepOperand]()
    numbers = iter(range(len(reads)))
    for each in row.form.split(", ") if row.form else ["."] * len(reads):
        if each == ".":
            number = next(numbers)
            operands.append(StepOperand(number, reads[number].layout.shape))
        else:
            operands.append(StepOperand(integer=None if each == "float" else int(each)))
    if len(operands) != _OPERANDS.get(name) and name != "cat":
        return (), ()
    layout = writes[0].layout
    step = SelectionStep(name, tuple(operands), layout.dtype, layout.shape)
    return (step,), (len(reads),)


@lru_cache(maxsize=4096)
def _chain(form: str) -> tuple[tuple[SelectionStep, ...], tuple[int, ...]]:
    text, _, results = form.rpartition(" -> ")
    steps = tuple(_step(each) for each in text.split("; "))
    return steps, tuple(map(int, results.split(", ")))


def _step(text: str) -> SelectionStep:
    call, _, result = text.rpartition(":")
    name, _, inside = call.partition("(")
    dtype, _, shape = result.partition("[")
    options: dict[str, str] = {}
    operands = list[StepOperand]()
    for each in inside.removesuffix(")").split(", "):
        key, is_option, option = each.partition("=")
        if is_option:
            options[key] = option
        elif each.startswith("#"):
            operands.append(StepOperand(integer=int(each[1:])))
        elif each == "float":
            operands.append(StepOperand())
        elif each:
            number, _, lengths = each.partition("[")
            operands.append(StepOperand(int(number), _shape(lengths)))
    axis = options.get("axis", "None")
    return SelectionStep(
        name,
        tuple(operands),
        dtype,
        _shape(shape),
        axis=None if axis == "None" else int(axis),
        keeps_dims=options.get("keep") == "1",
    )


def _shape(text: str) -> tuple[int, ...]:
    lengths = text.removesuffix("]")
    return tuple(map(int, lengths.split(","))) if lengths else ()


def outcome_of(
    steps: Sequence[SelectionStep], results: Sequence[int], reads: Sequence[ElementStates]
) -> StepOutcome:
    """The states of all values of steps, first those that are read."""
    values, used, noted = list(reads), None, None
    live = _live(steps, results, len(reads))
    for number, step in enumerate(steps, len(reads)):
        given = [_operand(each, values) for each in step.operands]
        undefined, origin = np.zeros(step.shape, np.bool_), None
        if number in live and any(each.undefined.any() for each in given):
            origin = next(each.origin for each in given if each.undefined.any())
            if step.name == "where" and not given[0].undefined.any():
                undefined, is_noted = _selected(step, given)
                noted = noted or (origin if is_noted else None)
            elif step.name == "cast":
                undefined = given[0].undefined
            else:
                used = used or origin
        elements = _computed(step, given)
        values.append(ElementStates(undefined, origin, elements))
    return StepOutcome(values, used, noted)


def _live(steps: Sequence[SelectionStep], results: Sequence[int], reads: int) -> set[int]:
    """The values that the results need: a chain leaves out the others."""
    live = set(results)
    for number in range(reads + len(steps) - 1, reads - 1, -1):
        if number in live:
            operands = steps[number - reads].operands
            live.update(each.value for each in operands if each.value is not None)
    return live


def _operand(operand: StepOperand, values: Sequence[ElementStates]) -> ElementStates:
    if operand.value is None:
        elements = None if operand.integer is None else np.asarray(operand.integer)
        return ElementStates(np.zeros((), np.bool_), None, elements)
    state, shape = values[operand.value], operand.shape or ()
    elements = None if state.elements is None else state.elements.reshape(shape)
    return ElementStates(state.undefined.reshape(shape), state.origin, elements)


def _selected(step: SelectionStep, given: Sequence[ElementStates]) -> tuple[ElementMask, bool]:
    """The undefined elements of a selection, and whether others may be undefined as well."""
    mask, one, other = given
    if mask.elements is not None:
        return np.where(mask.elements, one.undefined, other.undefined), False
    both = one.undefined & other.undefined
    either = one.undefined | other.undefined
    return np.broadcast_to(both, step.shape), bool((both != either).any())


def _computed(step: SelectionStep, given: Sequence[ElementStates]) -> Array | None:
    operands = list[Array | float]()
    for operand, state in zip(step.operands, given, strict=True):
        if state.elements is None:
            return None
        operands.append(state.elements if operand.integer is None else operand.integer)
    return compute(
        step.name,
        operands,
        BY_NAME[step.dtype],
        axis=step.axis,
        keep_dims=step.keeps_dims,
        shape=step.shape,
    )


class _KnownValue(NamedTuple):
    """Elements in TCM from `begin` on before `end`, one behind the other."""

    begin: int
    end: int
    dtype: str
    elements: Array


class KnownElements:
    """The elements of values in TCM that follow from integers, program by program."""

    def __init__(self, sips: Mapping[int, SipCalls]) -> None:
        self._sips = sips
        # By program, the calls that are followed, and the values behind them.
        self._programs: dict[tuple[int, int], tuple[Iterator[CallRow], list[_KnownValue]]] = {}
        self._next: dict[tuple[int, int], CallRow | None] = {}

    def of(self, accessor: Accessor, row: CallRow, layout: RowLayout, address: int) -> Array | None:
        """The elements of a block that a call reads, None if they are not known."""
        program = accessor.program
        assert program is not None, "only kernels have values"
        return _elements(self._before(accessor.sip, program.program, row), layout, address)

    def _before(self, sip: int, program: int, row: CallRow) -> list[_KnownValue]:
        """The values before a call, which comes behind those of earlier questions."""
        key = sip, program
        if key not in self._programs:
            [parts] = self._sips[sip].rows([program])
            rows = chain.from_iterable(parts)
            self._programs[key] = rows, []
            self._next[key] = next(rows, None)
        rows, values = self._programs[key]
        each = self._next[key]
        while each is not None and each.call < row.call:
            _follow(each, values)
            each = self._next[key] = next(rows, None)
        return values


def _follow(row: CallRow, values: list[_KnownValue]) -> None:
    """Follow a call: what it writes over is not known any more, unless it is computed."""
    reads = [each for each in row.blocks if each.access == Use.READ]
    writes = [each for each in row.blocks if each.access != Use.READ and not each.in_memory]
    results = _results(row, reads, writes, values) if writes else []
    for index, block in enumerate(writes):
        begin, layout = block.address, block.layout
        end = begin + layout.span_bytes
        values[:] = [each for each in values if each.end <= begin or end <= each.begin]
        elements = results[index] if results else None
        if elements is not None and len(layout.offsets) == 1:
            values.append(_KnownValue(begin, end, layout.dtype, elements.reshape(-1)))


def _results(
    row: CallRow,
    reads: Sequence[CallBlock],
    writes: Sequence[CallBlock],
    values: Sequence[_KnownValue],
) -> list[Array | None]:
    """The elements of the results of a call; empty if none of them is known."""
    if not row.operation.startswith(("math", "chain")):
        return []
    given = [_elements(values, each.layout, each.address) for each in reads]
    if row.operation != "chain" and any(each is None for each in given):
        return []
    steps, results = steps_of(row, reads, writes)
    states = [
        ElementStates(np.zeros(each.layout.shape, np.bool_), None, elements)
        for each, elements in zip(reads, given, strict=True)
    ]
    outcome = outcome_of(steps, results, states)
    return [outcome.values[number].elements for number in results]


def _elements(values: Sequence[_KnownValue], layout: RowLayout, address: int) -> Array | None:
    for each in values:
        if each.begin <= address and address + layout.span_bytes <= each.end:
            if each.dtype != layout.dtype:
                return None
            first = (address - each.begin) // layout.item_bytes
            return each.elements[layout.places + first]
    return None
