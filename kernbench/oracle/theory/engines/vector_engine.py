"""Time of one operation of the vector engine of a PE, when its ports and the engine are idle.

Vectors of `lanes` elements pass three servers: the fetch port, the engine and the store port. Let
F(k) be the time of the bytes of the first k vectors at the fetch port, E(k) that of k vectors in
the engine (fill of the pipeline + k x cycles of the function), and S(k) that of the bytes of the
result from vector k on at the store port. Vector k needs all that was before it at its own server,
and its own service at the server before. So the last byte is stored after the longest path

    T = max over j <= k of F(j) + E(k - j + 1) + S(k),

where the servers take turns at vectors j and k. For V full vectors with times f, c and s this is

    T = f + fill + c + s + (V - 1) max(f, c, s).

A reduction stores its result when the lanes have been combined: T = max over j of F(j) + E(V - j +
1) + tree + S(1). The tree over the lanes has ceil(log2(lanes)) levels. A running sum sends every
vector through as many levels, in which it is summed by halves of the distance between lanes, and
adds the sum of the vectors before: E(k) = fill + k x (levels + addition). A path is rounded up to
the picosecond as a whole, and so is the result of a reduction.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, log2

from kernbench.oracle.theory.paths.routes import FETCH_GBS
from kernbench.oracle.theory.roofline import bytes_ps, cycles_ps
from kernbench.oracle.theory.topology_file import TopologyFile

REDUCTIONS = ("sum", "max", "min", "argmax", "argmin")
"""The operations that combine elements into one."""
_SOFTMAX = (("max",), ("exp", "sum"), ("exp", "mul"))
_LANE_BYTES = 4


@dataclass(frozen=True)
class Elements:
    """A block of `count` elements of `item_bytes` each."""

    count: int
    item_bytes: int = 4

    @property
    def nbytes(self) -> int:
        """Bytes of the block."""
        return self.count * self.item_bytes


class VectorEngine:
    """The times of the vector engine of one topology file, in picoseconds."""

    def __init__(self, file: TopologyFile) -> None:
        self._file = file
        self.lanes: int = file["pe.math.lanes"]
        self._port_gbs = file.number(FETCH_GBS)
        self._clock_ghz = file.number("pe.math.clock_ghz")
        self._fill_cycles: int = file["pe.math.pipeline_cycles"]

    def cycles(self, *functions: str) -> int:
        """Cycles of a vector, the sum of those of the functions."""
        return sum(self._file[f"pe.math.cycles.{function}"] for function in functions)

    def computed_ps(self, cycles: int, vectors: int, extra_cycles: int = 0) -> Fraction:
        """E: `vectors` vectors of `cycles` each in the engine, and `extra_cycles` behind them."""
        return self.engine_ps(self._fill_cycles + cycles * vectors + extra_cycles)

    def engine_ps(self, cycles: Fraction | int) -> Fraction:
        """Time of cycles of the engine."""
        return cycles_ps(cycles, self._clock_ghz)

    def vector_ps(self, cycles: int, operands: int) -> Fraction:
        """The time of a vector among many, at the slower of the fetch port and the engine."""
        fetched_ps = self.port_ps(operands * self.lanes * _LANE_BYTES)
        return max(self.engine_ps(cycles), fetched_ps)

    def tree_cycles(self) -> int:
        """Cycles of the tree that combines the lanes."""
        # A binary tree halves the number of partial results at each level.
        levels = ceil(log2(self.lanes))
        return self._file["pe.math.tree_level_cycles"] * levels

    def vectors(self, elements: int, item_bytes: int = 4) -> int:
        """The vectors of `elements`; an element of 8 bytes takes two lanes."""
        return ceil(Fraction(elements * max(item_bytes, _LANE_BYTES), _LANE_BYTES * self.lanes))

    def epilogue_ps(self, function: str, elements: int) -> int:
        """An operation on an accumulator: no data is moved."""
        return ceil(self.computed_ps(self.cycles(function), self.vectors(elements)))

    def elementwise_ps(self, function: str, operands: Sequence[Elements], result: Elements) -> int:
        """T of an operation that returns a vector for every vector; no operands: nothing to fetch.

        An operand with fewer elements than the result is repeated, and fetched once.
        """
        # The widest element sets the lanes of all: a narrow operand takes as many vectors.
        widest = max((*operands, result), key=lambda block: block.item_bytes).item_bytes
        count = self.vectors(max(block.count for block in (*operands, result)), widest)
        return self._streamed_ps(self.cycles(function), operands, result, (count, widest))

    def reduction_ps(self, function: str, operand: Elements, result: Elements) -> int:
        """T of a reduction: all vectors, the tree, the result."""
        count = self.vectors(operand.count, operand.item_bytes), operand.item_bytes
        reduced_ps = self._reduced_ps(self.cycles(function), operand, count, self.tree_cycles())
        return reduced_ps + ceil(self.port_ps(result.nbytes))

    def running_sum_ps(self, operand: Elements, result: Elements) -> int:
        """T of a running sum."""
        widest = max(operand.item_bytes, result.item_bytes)
        count = self.vectors(operand.count, widest), widest
        # W. Hillis, G. Steele, "Data parallel algorithms", CACM 29(12), 1986: a prefix sum of n
        # lanes has as many levels as a reduction.
        cycles = self.tree_cycles() + self.cycles("cumsum")
        return self._streamed_ps(cycles, [operand], result, count)

    def softmax_ps(self, block: Elements, rows: int) -> int:
        """T of a softmax of `rows` rows: the largest elements, the sums of the exponentials, the
        quotients.

        Each of the three passes fetches the elements. The sums of the rows fill vectors, and each
        of these vectors takes one division for its reciprocals.
        """
        # Three passes: the exponentials need the largest element, the quotients the sum of the
        # exponentials, which are computed again rather than stored.
        count = self.vectors(block.count, block.item_bytes), block.item_bytes
        largest, total, quotient = (self.cycles(*functions) for functions in _SOFTMAX)
        tree = self.tree_cycles()
        divided = self.cycles("div") * self.vectors(rows, block.item_bytes)
        return (
            self._reduced_ps(largest, block, count, tree)
            + self._reduced_ps(total, block, count, tree + divided)
            + self._streamed_ps(quotient, [block], block, count)
        )

    def _streamed_ps(
        self,
        cycles: int,
        operands: Sequence[Elements],
        result: Elements,
        stream: tuple[int, int],
    ) -> int:
        count, widest = stream
        last_ps = self.port_ps(result.nbytes - self._until(result, count - 1, widest))
        paths: list[Fraction] = []
        for first in range(1, count + 1):
            fetched_ps = self._fetched_ps(operands, first, widest)
            # With `first` given, the time is linear in the vector after which the store port is
            # the slowest: that is the first or the last.
            stored_ps = self.port_ps(result.nbytes - self._until(result, first - 1, widest))
            paths += [
                fetched_ps + self.computed_ps(cycles, count - first + 1) + last_ps,
                fetched_ps + self.computed_ps(cycles, 1) + stored_ps,
            ]
        return ceil(max(paths))

    def _reduced_ps(
        self, cycles: int, operand: Elements, stream: tuple[int, int], extra_cycles: int
    ) -> int:
        count, widest = stream
        return ceil(
            max(
                self._fetched_ps([operand], first, widest)
                + self.computed_ps(cycles, count - first + 1, extra_cycles)
                for first in range(1, count + 1)
            )
        )

    def _fetched_ps(self, operands: Iterable[Elements], vectors: int, widest: int) -> Fraction:
        return self.port_ps(sum(self._until(each, vectors, widest) for each in operands))

    def _until(self, block: Elements, vectors: int, widest: int) -> int:
        """Bytes of a block in the first `vectors` vectors."""
        lanes_each = max(widest // _LANE_BYTES, 1)
        elements = Fraction(vectors * self.lanes, lanes_each)
        return min(block.nbytes, ceil(elements * block.item_bytes))

    def port_ps(self, nbytes: int) -> Fraction:
        """Time of bytes at the fetch port or at the store port."""
        return bytes_ps(nbytes, self._port_gbs)
