"""A chain of operations that the vector engine runs as one stream: its values and its passes.

The values of a chain are its *sources*, values in TCM, and the result of each *step*. The *width*
of a chain is the number of elements of its widest value. Every other value, and the result of every
reduction, is small and *kept*: it stays in vector registers from the pass that fetches or computes
it to the end of the chain. A wide value exists vector by vector only.

    pass 1   fetch s, m --> max ---------------> tree, m2 = maximum(m, .) --> store m2
    pass 2   fetch s, l --> sub m2, exp2, sum -> tree, add l -------------> store l2
                                     '--> cast ---> store p, vector by vector

A step begins as early as its operands allow:

- A wide value that depends on a reduction exists from the pass after that reduction on. It is
  computed in each pass that needs it, from sources that are fetched again.
- A small value that depends on a reduction is computed in the *tail* of the pass of the reduction,
  when its tree has combined the lanes, and so is a reduction of a kept value.
- A small value that depends on none is computed in the stream of the first pass that needs it.

A step whose result nothing needs is left out.
"""

from collections.abc import Callable, Sequence
from enum import Enum, auto
from functools import lru_cache
from math import prod
from typing import NamedTuple

from runtime.core.dtypes import DType
from runtime.core.launch_numbers import number_of_record
from runtime.core.trace import Operand
from runtime.language.value import Shape, Value

_LANE_BYTES = 4


class ChainStep(NamedTuple):
    """One operation; `inputs` are the numbers of those operands that are values of the chain.

    `reduces` is whether it combines elements, along `axis` or all, and `keep_dims` keeps that axis.
    """

    name: str
    operands: tuple[Value | float, ...]
    inputs: tuple[int, ...]
    result: Value
    axis: int | None
    reduces: bool
    keep_dims: bool = False


class ChainPass(NamedTuple):
    """One pass over the elements, as numbers of values.

    `fetched` are sources, `stream` is computed vector by vector and `tail` after the last one; of
    what is returned, `streamed` is stored vector by vector and `kept` at the end.
    """

    fetched: tuple[int, ...]
    stream: tuple[int, ...]
    tail: tuple[int, ...]
    streamed: tuple[int, ...]
    kept: tuple[int, ...]


class _Origin(Enum):
    """The source of a value: TCM, a stream, the tree at the end of one, or a tail."""

    SOURCE = auto()
    STREAM = auto()
    REDUCTION = auto()
    TAIL = auto()


class ChainValue(NamedTuple):
    """A value of a plan, which has a shape and a type, but neither an address nor elements."""

    shape: Shape
    dtype: DType

    @property
    def numel(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.numel * self.dtype.itemsize


class PlannedStep(NamedTuple):
    """One operation of a plan; see `ChainStep`."""

    name: str
    inputs: tuple[int, ...]
    result: ChainValue
    reduces: bool


class ChainPlan:
    """The values of a chain by number, first the sources, then the results of the steps, and the
    passes that compute them: the same for all calls with operands of these shapes and types.

    `results` are the numbers of the values that the chain returns, in their order.
    """

    def __init__(
        self,
        sources: Sequence[ChainValue],
        steps: Sequence[PlannedStep],
        results: Sequence[int],
    ) -> None:
        self.sources, self.steps, self.results = len(sources), tuple(steps), tuple(results)
        self.values = (*sources, *(step.result for step in self.steps))
        self._live = sorted(self._needed())
        self.width = max((self.values[number].numel for number in self._live), default=0)
        self.is_kept = [self._keeps(number) for number in range(len(self.values))]
        """Whether a value stays in vector registers, by its number."""
        self.kept = [number for number in self._live if self.is_kept[number]]
        """The numbers of the values that stay there."""
        self._parts = [_Origin.SOURCE] * self.sources
        # The last pass behind whose stream a value comes; 0 for one that needs no reduction.
        self._after = [0] * self.sources
        for step in self.steps:
            self._add(step)
        self.passes = self._passes()

    def _keeps(self, number: int) -> bool:
        is_reduced = number >= self.sources and self.step(number).reduces
        return is_reduced or self.values[number].numel < self.width

    def step(self, number: int) -> PlannedStep:
        """The step that computes a value."""
        return self.steps[number - self.sources]

    def last_fetch(self, number: int) -> int:
        """The last pass that fetches a source, from 1; 0 for one that nothing needs."""
        return self._last(number, lambda each: each.fetched)

    def stored_in(self, number: int) -> int:
        """The pass that stores a result, from 1."""
        return self._last(number, lambda each: (*each.streamed, *each.kept))

    def _last(self, number: int, of: Callable[[ChainPass], Sequence[int]]) -> int:
        numbers = (index for index, each in enumerate(self.passes, start=1) if number in of(each))
        return max(numbers, default=0)

    def _needed(self) -> set[int]:
        needed, left = set[int](), list(self.results)
        while left:
            number = left.pop()
            if number not in needed and number >= self.sources:
                left += self.step(number).inputs
            needed.add(number)
        return needed

    def _add(self, step: PlannedStep) -> None:
        after = max((self._after[each] for each in step.inputs), default=0)
        if step.reduces:
            in_tail = after > 0 and all(self.is_kept[each] for each in step.inputs)
            part = _Origin.TAIL if in_tail else _Origin.REDUCTION
        else:
            is_small = step.result.numel < self.width
            part = _Origin.TAIL if after > 0 and is_small else _Origin.STREAM
        self._parts.append(part)
        # The tree combines the lanes behind the last vector: the result exists from the next pass
        # on.
        self._after.append(after + 1 if part is _Origin.REDUCTION else after)

    def _passes(self) -> tuple[ChainPass, ...]:
        roots: dict[int, list[int]] = {}
        for number in self._live:
            # Other values of a stream are computed where a root needs them.
            if self._parts[number] is not _Origin.STREAM:
                roots.setdefault(self._after[number], []).append(number)
            elif number in self.results:
                roots.setdefault(self._after[number] + 1, []).append(number)
        present, passes = set[int](), list[ChainPass]()
        for index in range(1, max(roots, default=0) + 1):
            each = self._pass(roots[index], present)
            present |= {
                number
                for number in (*each.fetched, *each.stream, *each.tail)
                if self.is_kept[number]
            }
            passes.append(each)
        return tuple(passes)

    def _pass(self, roots: Sequence[int], present: set[int]) -> ChainPass:
        """The pass that computes `roots`; `present` are in registers from passes before."""
        tail = [number for number in roots if self._parts[number] is _Origin.TAIL]
        streamed = [number for number in roots if self._parts[number] is _Origin.STREAM]
        computed = {number for number in roots if number not in tail}
        left = [each for number in roots for each in self.step(number).inputs]
        fetched = set[int]()
        while left:
            number = left.pop()
            if number in present:
                continue
            if self._parts[number] is _Origin.SOURCE:
                fetched.add(number)
            elif self._parts[number] is _Origin.STREAM and number not in computed:
                computed.add(number)
                left += self.step(number).inputs
        return ChainPass(
            fetched=tuple(sorted(fetched)),
            stream=tuple(sorted(computed)),
            tail=tuple(tail),
            streamed=tuple(streamed),
            kept=tuple(each for each in roots if each in self.results and each not in streamed),
        )


@lru_cache(maxsize=4096)
def chain_plan(
    sources: tuple[ChainValue, ...], steps: tuple[PlannedStep, ...], results: tuple[int, ...]
) -> ChainPlan:
    """The plan of a chain; a kernel repeats its chains on blocks of a few sizes."""
    return ChainPlan(sources, steps, results)


class Chain:
    """A plan with its values in TCM and in registers.

    `copies` are the addresses in registers of the sources, of those that are kept.
    """

    def __init__(
        self,
        sources: Sequence[Value],
        copies: Sequence[int],
        steps: Sequence[ChainStep],
        plan: ChainPlan,
    ) -> None:
        self.sources, self.copies, self.steps = tuple(sources), tuple(copies), tuple(steps)
        self.values = (*self.sources, *(step.result for step in self.steps))
        self.plan = plan

    @classmethod
    def planned(
        cls,
        sources: Sequence[Value],
        copies: Sequence[int],
        steps: Sequence[ChainStep],
        results: Sequence[int],
    ) -> "Chain":
        """A chain which returns the values with the numbers `results`."""
        plan = chain_plan(
            tuple([ChainValue(each.shape, each.dtype) for each in sources]),
            tuple(
                [
                    PlannedStep(
                        each.name,
                        each.inputs,
                        ChainValue(each.result.shape, each.result.dtype),
                        each.reduces,
                    )
                    for each in steps
                ]
            ),
            tuple(results),
        )
        return cls(sources, copies, steps, plan)

    @property
    def returned(self) -> list[Value]:
        """The values that it returns."""
        return [self.values[number] for number in self.plan.results]

    def step(self, number: int) -> ChainStep:
        """The step that computes a value."""
        return self.steps[number - len(self.sources)]

    def inputs_of(self, step: ChainStep) -> tuple[Operand | float, ...]:
        """The operands of a step, where the engine reads them: a kept source in its registers."""
        numbers = iter(step.inputs)
        return tuple(
            self._location(each, next(numbers))
            if isinstance(each, Value)
            else number_of_record(each)
            for each in step.operands
        )

    def _location(self, value: Value, number: int) -> Operand:
        if number >= len(self.sources) or not self.plan.is_kept[number]:
            return value.operand
        return Operand(self.copies[number], value.shape, value.dtype.name)


class ChainCall(NamedTuple):
    """A chain, and for each result the value that it is written over, None for a new one.

    Its wait returns one value, or a tuple if the function has returned one.
    """

    chain: Chain
    outs: tuple[Value | None, ...]
    is_tuple: bool

    @property
    def values(self) -> list[Value]:
        """The results, as values of the chain."""
        return self.chain.returned

    def returned(self, results: Sequence[Value]) -> Value | tuple[Value, ...]:
        """The values that the wait returns, with the results in TCM."""
        return tuple(results) if self.is_tuple else results[0]


class VectorRegisters(NamedTuple):
    """The `total` registers of `lanes` lanes of 32 bits in which a chain keeps values.

    The results of its operations have addresses from `address` on.
    """

    total: int
    lanes: int
    address: int

    def of(self, value: ChainValue) -> int:
        """The number of registers that a value takes."""
        # A 64-bit element takes two lanes, one of less than 32 bits a whole lane.
        return -(-value.numel * max(1, value.dtype.itemsize // _LANE_BYTES) // self.lanes)
