"""Records the operations of a function as a chain of the vector engine."""

from collections.abc import Iterable, Sequence
from math import prod
from typing import NoReturn

from runtime.core.dtypes import DType
from runtime.core.strided_axes import merged_axes
from runtime.language.chain import Chain, ChainStep
from runtime.language.chains.passes import passes
from runtime.language.context import KernelContext
from runtime.language.functions import SCANS
from runtime.language.inference import infer, result_elements
from runtime.language.running import NO_OPTIONS, MathOptions
from runtime.language.value import Array, Shape, Value, row_major
from runtime.model.addresses import VECTOR_BYTES
from runtime.model.tiles import TileSize

_MOVES = frozenset({"trans", "cat"})
_ALIGNMENT = 8


class ChainRecorder:
    """The `KernelContext` of a chain: its operations are computed and recorded, and take no time.

    `pe` is the context of the kernel.
    """

    def __init__(self, name: str, pe: KernelContext) -> None:
        self._name, self._pe = name, pe
        self._sources: list[Value] = []
        # By address, type and axes.
        self._numbers: dict[tuple[object, ...], int] = {}
        self._copies: list[int] = []
        self._steps: list[ChainStep] = []
        # By address: a view with an axis more is the same value.
        self._results: dict[int, int] = {}
        self._first = self._next = pe.vector_registers.address

    @property
    def gemm_tile(self) -> TileSize:
        """See `KernelContext`."""
        return self._pe.gemm_tile

    def program_id(self, axis: int) -> int:
        """See `KernelContext`."""
        return self._pe.program_id(axis)

    def num_programs(self, axis: int) -> int:
        """See `KernelContext`."""
        return self._pe.num_programs(axis)

    def elements_of(self, value: Value) -> Array | None:
        """See `KernelContext`."""
        return self._pe.elements_of(value)

    def math(
        self,
        name: str,
        operands: Sequence[Value | float],
        options: MathOptions = NO_OPTIONS,
        out: Value | None = None,
    ) -> Value:
        """Compute an operation, and record it as the next step."""
        self._check(name, out)
        whole, element = infer(name, operands, options)
        inputs = tuple(self._number(each) for each in operands if isinstance(each, Value))
        (only,) = passes(name)
        step = ChainStep(
            name=name,
            operands=tuple(operands),
            inputs=inputs,
            result=self._new(whole, element),
            axis=options.axis,
            reduces=only.reduces,
            keep_dims=options.keep_dims,
        )
        if self._pe.has_data:
            step.result.data = step_elements(step)
        self._steps.append(step)
        return step.result

    def take(self, operands: Iterable[object]) -> None:
        """Number those operands of the function that are values."""
        for each in operands:
            if isinstance(each, Value):
                self._number(each)

    def chain(self, returned: Sequence[object]) -> Chain:
        """All that was recorded, with the values that it returns."""
        results = [self._returned(each) for each in returned]
        if not results:
            raise ValueError(f"{self._name}: the function returns no value")
        # The function may use more values in TCM than its operands, at any time. So the numbers of
        # steps, which follow those of the sources, are known only now.
        sources = len(self._sources)
        steps = [
            step._replace(inputs=tuple(_numbered(each, sources) for each in step.inputs))
            for step in self._steps
        ]
        numbers = [_numbered(each, sources) for each in results]
        return Chain.planned(self._sources, self._copies, steps, numbers)

    def __getattr__(self, name: str) -> NoReturn:
        raise TypeError(
            f"{self._name}: {name} is no operation of the vector engine; a chain has elementwise "
            "functions, comparisons, casts, constants and reductions"
        )

    def _returned(self, value: object) -> int:
        if not isinstance(value, Value):
            given = f"{type(value).__name__} {value!r}"
            raise TypeError(
                f"{self._name}: the function returns a value or a tuple of values, not {given}"
            )
        number = self._number(value)
        if number < 0:
            raise ValueError(
                f"{self._name}: the function returns {value!r}, which it has not computed"
            )
        return number

    def _number(self, value: Value) -> int:
        """The index of a step, or of a source, as its complement."""
        if self._first <= value.address < self._next:
            index = self._results.get(value.address)
            if index is None or self._steps[index].result.numel != value.numel:
                raise ValueError(
                    f"{self._name}: {value!r} is part of a result of the chain, which exists as a "
                    "whole only, vector by vector"
                )
            if value.strides != row_major(value.shape) and (
                merged_axes(value.shape, value.strides) not in ([], [(value.numel, 1)])
            ):
                raise ValueError(
                    f"{self._name}: {value!r} has the elements of a result of the chain in another "
                    "order, which vector by vector they cannot have; transpose an operand of the "
                    "chain, or what it returns"
                )
            return index
        # Axes of length 1 do not matter: they are repeated or none.
        axes = zip(value.shape, value.strides, strict=True)
        key = value.address, value.dtype, tuple(axis for axis in axes if axis[0] != 1)
        number = self._numbers.get(key)
        if number is None:
            self._pe.settle(value)
            number = self._numbers[key] = len(self._sources)
            self._sources.append(value)
            self._copies.append(self._reserve(value.nbytes))
        return ~number

    def _new(self, shape: Shape, dtype: DType) -> Value:
        result = Value(shape, dtype, None, self._reserve(prod(shape) * dtype.itemsize))
        self._results[result.address] = len(self._steps)
        return result

    def _reserve(self, nbytes: int) -> int:
        """The address of a value in registers, aligned to the widest elements."""
        address = self._next
        # No two values have one address, not even empty ones.
        self._next += max(-(-nbytes // _ALIGNMENT), 1) * _ALIGNMENT
        if self._next - self._first > VECTOR_BYTES:
            raise ValueError(
                f"{self._name}: operands and results have {self._next - self._first:,} bytes; the "
                f"addresses of a chain reach {VECTOR_BYTES:,}: compute fewer rows at a time"
            )
        return address

    def _check(self, name: str, out: Value | None) -> None:
        if out is not None:
            raise TypeError(f"{self._name}: an operation of a chain has no out; the chain has one")
        if name in _MOVES or name in SCANS:
            raise TypeError(
                f"{self._name}: {name} moves elements between vectors; a chain computes them "
                "vector by vector"
            )
        if len(passes(name)) > 1:
            raise TypeError(
                f"{self._name}: {name} makes several passes of its own; write it in parts, as in "
                "e = tl.exp(x - tl.max(x)) and e / tl.sum(e)"
            )


def step_elements(step: ChainStep) -> Array | None:
    """The elements of the result of a step; None if an operand has none, as in a run without
    data.
    """
    return result_elements(
        step.name,
        step.operands,
        step.result.dtype,
        axis=step.axis,
        keep_dims=step.keep_dims,
        shape=step.result.shape,
    )


def _numbered(index: int, sources: int) -> int:
    return ~index if index < 0 else sources + index
