"""The loop of kernels that stream blocks through the scratch of a PE.

A kernel is a row of stages: loads, one or more chains of the vector engine, stores. In a step of
the loop, the chains work on successive blocks, while the DMA stores the results of an earlier one
and loads the operands of a later one:

    step t:  chain 1 of block t - ahead,  chain 2 of block t - ahead - 1,  ...,
             stores of the block behind them,  loads of block t

A command that uses the result of a stage in flight waits for it when it is issued. Behind it, at
least one other chain is in the queue of the vector engine then, so the engine never waits for the
issue of a command, nor for the tree of a reduction.

Values of successive blocks have memory in rings: a block writes over an earlier one, whose last
stage was issued a step before.
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import NamedTuple

from runtime.core.dtypes import DType
from runtime.language import tl
from runtime.language.value import Shape, Value

Work = Callable[[int], None]
"""A stage: it issues the commands for the block with a number."""


class StagePace(NamedTuple):
    """The distances of the stages of a loop: the loads of `ahead` blocks are started before the
    chains of a block; successive chains work on blocks that are `apart`, 1 or 0.
    """

    ahead: int
    apart: int

    def behind(self, chain: int) -> int:
        """The steps between the loads of a block and the chain with a number, from 0 on; the stores
        have the number behind that of the last chain.
        """
        return self.ahead + chain * self.apart

    def slots(self, first: int, last: int) -> int:
        """The blocks of which a value is in the scratch that one stage writes and another one uses
        last, by the steps at which they work on a block.
        """
        return last - first + 1 if self.apart else 1


SIDE_BY_SIDE = StagePace(ahead=2, apart=1)
"""All stages work at the same time."""
IN_TURN = StagePace(ahead=1, apart=0)
"""The stages of a block follow one another: the scratch holds one block."""


def streamed(count: int, pace: StagePace, load: Work, chains: Sequence[Work], store: Work) -> None:
    """Issue the loads, the chains and the stores of `count` blocks."""
    stages = [(stage, pace.behind(number)) for number, stage in enumerate((*chains, store))]
    stages.append((load, 0))
    for step in range(count + pace.behind(len(chains))):
        for stage, behind in stages:
            if 0 <= step - behind < count:
                stage(step - behind)


class BlockRing:
    """Memory for the values of successive blocks, each of at most `elements`."""

    def __init__(self, slots: int, elements: int, dtype: DType) -> None:
        self._slots = [tl.empty((elements,), dtype) for _ in range(slots)]

    def of(self, block: int, shape: Shape) -> Value:
        """The value of a block, over that of an earlier one."""
        return self._slots[block % len(self._slots)][: prod(shape)].reshape(shape)
