"""The vectors of an operation: their number, bytes at the ports, times, and records."""

from collections.abc import Iterable, Sequence
from math import lcm, prod

from runtime.core.coordinates import PeCoordinates
from runtime.core.simtime import PS_PER_NS, exact
from runtime.core.trace import Operand, OpRecord
from sip_node.chip.fabric.server import Server
from sip_node.chip.mapping.strided_block import item_bytes, nbytes_of

_LANE_BYTES = 4


class Clock:
    """A clock of `clock_ghz`. No operation waits for an edge: a number of cycles is a duration."""

    def __init__(self, clock_ghz: float) -> None:
        self.cycle_ps = PS_PER_NS / exact(clock_ghz)

    def ps(self, cycles: int) -> int:
        """The time of `cycles`, rounded up to the picosecond."""
        return -(-cycles * self.cycle_ps.numerator // self.cycle_ps.denominator)


class VectorStream:
    """Operands and result, cut into vectors of `lanes` elements that are counted from 1.

    A lane has 32 bits: an element of 8 bytes counts as two. Vector k takes the k-th part of each
    operand. An operand that is repeated (broadcast) has fewer parts; registers keep it.
    """

    def __init__(self, operands: Sequence[Operand], result: Operand, lanes: int) -> None:
        blocks = (*operands, result)
        # A reduction has more inputs than outputs, a broadcast the reverse: the larger one counts.
        elements = max(prod(block.shape) for block in blocks)
        # The widest type counts: all operands of an element meet in one lane. A narrower element
        # takes a whole lane, since lanes of this engine are not divided.
        lanes_each = max(max(1, item_bytes(block.dtype) // _LANE_BYTES) for block in blocks)
        self._lanes, self._lanes_each = lanes, lanes_each
        self.count = self.vectors(elements)
        self._operands = tuple(BlockParts(block, lanes, lanes_each) for block in operands)
        self._result = BlockParts(result, lanes, lanes_each)

    @classmethod
    def joined(cls, operands: Sequence[Operand], result: Operand, lanes: int) -> "VectorStream":
        """The stream of operands that follow each other, as in a concatenation."""
        return cls((result,) if operands else (), result, lanes)

    def vectors(self, elements: int) -> int:
        """The vectors of as many elements of these types."""
        return -(-elements * self._lanes_each // self._lanes)

    @property
    def fetched_bytes(self) -> int:
        """Bytes of all operands."""
        return sum(operand.nbytes for operand in self._operands)

    @property
    def stored_bytes(self) -> int:
        """Bytes of the result."""
        return self._result.nbytes

    def fetched(self, vectors: int) -> int:
        """Bytes of the operands in the first `vectors` vectors."""
        return sum(operand.until(vectors) for operand in self._operands)

    def stored_from(self, vector: int) -> int:
        """Bytes of the result in `vector` and all after it."""
        return self.stored_bytes - self._result.until(vector - 1)

    def bends(self) -> list[int]:
        """The last vector, and those besides the first behind which the size of vectors changes.

        All vectors between two of them have equally many bytes.
        """
        ends = [operand.whole for operand in self._operands]
        return _between(2, self.count, (*ends, *(end + 1 for end in ends), self.count))


class StreamPaths:
    """Times of paths through fetch port, engine and store port, of a stream that waits nowhere."""

    def __init__(self, fetch: Server, clock: Clock, store: Server) -> None:
        times_ps = fetch.byte_ps, clock.cycle_ps, store.byte_ps
        # Integers over one denominator: a path is rounded once, so that among paths of equal
        # length none is longer by its roundings.
        self._unit = lcm(*(each.denominator for each in times_ps))
        self._fetched, self._cycle, self._stored = (int(each * self._unit) for each in times_ps)

    def ps(self, fetched_bytes: int, cycles: int = 0, stored_bytes: int = 0) -> int:
        """Time of a path, rounded up to the picosecond."""
        path = fetched_bytes * self._fetched + cycles * self._cycle + stored_bytes * self._stored
        return -(-path // self._unit)


class BlockParts:
    """The parts of one block, a vector each; all but the last are of equal size.

    An element takes `lanes_each` of the `lanes` of a vector.
    """

    __slots__ = ("_lanes_bytes", "_lanes_each", "nbytes")

    def __init__(self, block: Operand, lanes: int, lanes_each: int) -> None:
        self.nbytes = nbytes_of(block)
        self._lanes_bytes, self._lanes_each = lanes * item_bytes(block.dtype), lanes_each

    @property
    def whole(self) -> int:
        """The number of parts of that size."""
        return self.nbytes * self._lanes_each // self._lanes_bytes

    @property
    def nvectors(self) -> int:
        """The number of all parts."""
        return -(-self.nbytes * self._lanes_each // self._lanes_bytes)

    def until(self, vectors: int) -> int:
        """Bytes of the first `vectors` parts."""
        # An operand that is repeated ends early: registers keep it for the vectors to come.
        return min(self.nbytes, -(-vectors * self._lanes_bytes // self._lanes_each))


def _between(least: int, most: int, numbers: Iterable[int]) -> list[int]:
    return sorted({number for number in numbers if least <= number <= most})


def vector_record(
    pe: PeCoordinates,
    name: str,
    span_ps: tuple[int, int],
    inputs: Sequence[Operand | float],
    result: Operand,
    checksum: int,
    *,
    axis: int | None = None,
) -> OpRecord:
    """The record of operation `name` of `pe`, from the first to the second time of `span_ps`, with
    the result `result`, whose elements have the CRC-32 `checksum`.
    """
    start_ps, end_ps = span_ps
    return OpRecord(
        engine="pe_math",
        name=name,
        start_ps=start_ps,
        end_ps=end_ps,
        cube=pe.cube,
        pe=pe.pe,
        address=result.address,
        nbytes=nbytes_of(result),
        shape=result.shape,
        dtype=result.dtype,
        inputs=tuple(inputs),
        strides=result.strides,
        axis=axis,
        checksum=checksum,
    )
