"""Time of a chain of the vector engine, when its ports and the engine are idle.

A chain makes passes over its elements. In a pass, vector k waits for its operands and for the
vector before, is computed by all operations that have a vector k, and is stored. With c(k) the
cycles of these operations, F(k) the time of the bytes of the first k vectors at the fetch port and
s(k) the time of the results of vector k at the store port:

    computed(k) = max(F(k), computed(k - 1)) + c(k)
    stored(k) = max(computed(k) + fill, stored(k - 1)) + s(k)

A pass with reductions then takes the tree, and its tail: the operations on what was reduced, and a
tree for each reduction among them. The next pass begins after it. What a pass keeps is stored at
the end of the tail, behind what it has streamed. Ends are rounded up to the picosecond.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from kernbench.oracle.theory.engines.vector_engine import Elements, VectorEngine
from kernbench.oracle.theory.topology_file import TopologyFile

Work = tuple[str, int]
"""A function, and the number of elements on which it works."""


@dataclass(frozen=True)
class PassWork:
    """The work of one pass: fetched blocks, functions, and stored blocks.

    `stream` is computed vector by vector; one of its functions may be a reduction, and then `tail`
    follows, of which `trees` functions are reductions. `streamed` leaves vector by vector, `kept`
    at the end.
    """

    fetched: Sequence[Elements]
    stream: Sequence[Work]
    streamed: Sequence[Elements] = ()
    reduces: bool = False
    tail: Sequence[Work] = ()
    trees: int = 0
    kept: Sequence[Elements] = ()


class ChainTimes:
    """The times of chains whose widest elements have `item_bytes`, in picoseconds."""

    def __init__(self, file: TopologyFile, item_bytes: int = 4) -> None:
        self._engine = VectorEngine(file)
        self._port_ps, self._cycles_ps = self._engine.port_ps, self._engine.engine_ps
        # An element of 8 bytes takes two lanes, and so do all elements of its chain.
        self._elements = Fraction(self._engine.lanes, max(1, item_bytes // 4))

    def chain_ps(self, passes: Sequence[PassWork]) -> int:
        """Time from the begin of the first fetch to the last byte of the last result in TCM."""
        begun_ps = ends_ps = 0
        for each in passes:
            computed_ps, stored_ps = self._pass_ps(each)
            ends_ps = max(ends_ps, begun_ps + stored_ps)
            begun_ps += computed_ps
        return ends_ps

    def computed_ps(self, each: PassWork) -> int:
        """The time of a pass in the engine, with all operands in registers."""
        cycles = sum(
            self._cycles(function) * self._vectors(count) for function, count in each.stream
        )
        return ceil(self._engine.computed_ps(cycles, 1))

    def fetched_ps(self, each: PassWork) -> int:
        """The time of the bytes of a pass at the fetch port."""
        return ceil(self._port_ps(sum(block.nbytes for block in each.fetched)))

    def _pass_ps(self, each: PassWork) -> tuple[int, int]:
        """The times at which the last result of a pass is computed and stored."""
        last = max(self._vectors(count) for _, count in each.stream)
        last = max([last, *(self._vectors(block.count) for block in each.fetched)])
        fill_ps = self._engine.computed_ps(0, 0)
        computed_ps = stored_ps = first_ps = Fraction(0)
        for vector in range(1, last + 1):
            fetched_ps = self._port_ps(self._until(each.fetched, vector))
            cycles = sum(
                self._cycles(function)
                for function, count in each.stream
                if vector <= self._vectors(count)
            )
            computed_ps = max(fetched_ps, computed_ps) + self._cycles_ps(cycles)
            nbytes = self._until(each.streamed, vector) - self._until(each.streamed, vector - 1)
            stored_ps = max(computed_ps + fill_ps, stored_ps) + self._port_ps(nbytes)
            if vector == 1:
                first_ps = computed_ps + fill_ps
        end_ps = ceil(computed_ps + fill_ps + self._cycles_ps(self._tail_cycles(each)))
        streamed = sum(block.nbytes for block in each.streamed)
        # Results that are kept pass the store port behind the streamed ones, which occupy it from
        # the first one on.
        free_ps = ceil(first_ps) + ceil(self._port_ps(streamed))
        kept_ps = ceil(self._port_ps(sum(block.nbytes for block in each.kept)))
        ends_ps = [ceil(stored_ps)] if streamed else [end_ps]
        if kept_ps:
            ends_ps.append(max(end_ps, free_ps if streamed else 0) + kept_ps)
        return end_ps, max(ends_ps)

    def _tail_cycles(self, each: PassWork) -> int:
        trees = each.reduces + each.trees
        functions = (self._cycles(name) * self._vectors(count) for name, count in each.tail)
        return trees * self._engine.tree_cycles() + sum(functions)

    def _cycles(self, function: str) -> int:
        return self._engine.cycles(function)

    def _vectors(self, elements: int) -> int:
        return ceil(elements / self._elements)

    def _until(self, blocks: Iterable[Elements], vectors: int) -> int:
        """Bytes of the first `vectors` vectors of some blocks."""
        return sum(
            min(block.nbytes, ceil(vectors * self._elements * block.item_bytes)) for block in blocks
        )
