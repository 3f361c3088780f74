"""Neighbouring operations of the vector engine that run as one chain.

An operation joins a chain if what the chain keeps fits into the vector registers, and if a wide
operation behind a reduction computes little again: its pass fetches the wide operands once more.
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import NamedTuple

from kernbench.triton.tape.tape import MathStep, Operand, TapeBlock, TapeStorage
from runtime.language.chain import ChainValue, VectorRegisters
from runtime.language.chains.passes import passes
from runtime.language.context import running_kernel
from runtime.language.functions import SCANS
from runtime.language.value import Value

_ALONE = frozenset({"trans", "cat", "softmax", *SCANS})
"""Operations that no chain has."""
_CHEAP = frozenset(
    {
        *("add", "sub", "mul", "fma", "maximum", "minimum", "abs", "relu", "cast", "full"),
        "bitcast",
        *("arange", "where", "eq", "ne", "lt", "le", "gt", "ge"),
        *("bitwise_and", "bitwise_or", "bitwise_xor"),
    }
)
_COSTLY_CYCLES = 8
_MOST_CYCLES_AGAIN = 2
"""Cycles of a vector that a later pass may spend on what an earlier one has computed."""
_MOST_STEPS = 256


class _ChainedValue(NamedTuple):
    """A value of a chain: the passes behind which it exists, and the cycles to compute a vector of
    it again.
    """

    numel: int
    registers: int
    level: int
    cycles: int
    is_reduced: bool


class StepChain:
    """Steps that run as one chain, in their order."""

    def __init__(self, registers: VectorRegisters) -> None:
        self._registers = registers
        self.steps: list[MathStep] = []
        self._known: dict[TapeStorage, _ChainedValue] = {}
        self._written: set[TapeStorage] = set()
        self._width = self._kept = 0

    def __bool__(self) -> bool:
        return bool(self.steps)

    def writes(self, storage: TapeStorage) -> bool:
        """Whether a step writes a storage."""
        return storage in self._written

    def joins(self, step: MathStep) -> bool:
        """Add a step; False, and no change, if it does not belong into this chain."""
        if step.name in _ALONE:
            return False
        added = self._added(step)
        if added is None:
            return False
        width, kept = self._kept_with(added)
        # The values of one operation may be more than fit: it runs alone.
        if kept > self._registers.total or len(self.steps) >= _MOST_STEPS:
            return False
        if self.steps and not self._streams(step, added, width):
            return False
        self._known.update(added)
        self._width, self._kept = width, kept
        self._written.add(step.target.storage)
        self.steps.append(step)
        return True

    def _kept_with(self, added: dict[TapeStorage, _ChainedValue]) -> tuple[int, int]:
        """The width of the chain, and the registers that it keeps, with more values."""
        width = max(each.numel for each in added.values())
        values, kept = added.values(), self._kept
        if width > self._width or not self._known.keys().isdisjoint(added):
            values, kept = {**self._known, **added}.values(), 0
            width = max(each.numel for each in values)
        width = max(width, self._width)
        for each in values:
            if each.is_reduced or each.numel < width:
                kept += each.registers
        return width, kept

    def _added(self, step: MathStep) -> dict[TapeStorage, _ChainedValue] | None:
        """The values that a step adds; None if it uses one of the chain otherwise than whole."""
        added = dict[TapeStorage, _ChainedValue]()
        inputs = list[_ChainedValue]()
        for each in step.operands:
            if not isinstance(each, TapeBlock):
                continue
            storage = each.storage
            if storage in self._written and (storage.pieces or not each.is_reshaped):
                return None
            known = self._known.get(storage) or added.get(storage)
            if known is None or known.numel < prod(each.shape):
                known = self._of(each, 0, 0, is_reduced=False)
                added[storage] = known
            inputs.append(known)
        if step.target.storage in self._known:
            # Another part of the same storage: its extents overlap.
            return None
        (only,) = passes(step.name)
        level = max((each.level for each in inputs), default=0)
        own = 1 if step.name in _CHEAP else _COSTLY_CYCLES
        cycles = own + sum(each.cycles for each in inputs if each.level == level)
        if only.reduces:
            added[step.target.storage] = self._of(step.target, level + 1, 0, is_reduced=True)
        else:
            added[step.target.storage] = self._of(step.target, level, cycles, is_reduced=False)
        return added

    def _of(self, block: TapeBlock, level: int, cycles: int, *, is_reduced: bool) -> _ChainedValue:
        registers = self._registers.of(ChainValue(block.shape, block.dtype))
        return _ChainedValue(prod(block.shape), registers, level, cycles, is_reduced)

    def _streams(self, step: MathStep, added: dict[TapeStorage, _ChainedValue], width: int) -> bool:
        """Whether a step computes little again."""
        inputs = [
            added.get(each.storage) or self._known[each.storage]
            for each in step.operands
            if isinstance(each, TapeBlock)
        ]
        level = max((each.level for each in inputs), default=0)
        again = sum(
            each.cycles
            for each in inputs
            if each.numel == width and not each.is_reduced and each.level < level
        )
        return again <= _MOST_CYCLES_AGAIN


def results_of(
    steps: Sequence[MathStep],
    kept: Sequence[MathStep],
    value_of: Callable[[TapeBlock], Value],
) -> tuple[Value, ...]:
    """The results of the steps `kept` of a chain, computed in its own context; `value_of` has the
    operands that no step makes.
    """
    engine, results = running_kernel(), dict[TapeStorage, Value]()

    def operand(each: Operand) -> Value | float:
        if not isinstance(each, TapeBlock):
            return each
        own = results.get(each.storage)
        if own is None:
            return value_of(each)
        return own if own.shape == each.shape else own.reshape(each.shape)

    for step in steps:
        operands = [operand(each) for each in step.operands]
        results[step.target.storage] = engine.math(step.name, operands, step.options)
    return tuple([results[each.target.storage] for each in kept])
