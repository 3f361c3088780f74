"""The times of the passes of a vector operation, as offsets to when its stages become free.

All vectors of a pass flow through fetch port, engine and store port, each of which serves them in
order. The pass begins with the engine free at one time and its operands at the fetch port from
another: so the end of a vector comes after the longer of two paths, and both have a length
that depends on sizes and types only.

A pass of a chain is one stream: the engine takes vector k of all its operations together, when the
last byte of what it fetches for it is in registers. An operation on fewer elements than the widest
value takes part in the first vectors only, as does an operand with fewer elements. So the cycles of
vector k fall with k, and the bytes of its operands and results do, too. Between the vectors where
they change the three stages are linear, and the longest path through them (see `math.py`) has its
turns at such vectors.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from runtime.core.trace import Operand
from runtime.language.chain import ChainPass, ChainPlan, PlannedStep
from runtime.language.chains.passes import Pass
from sip_node.chip.pe.compute.vector_stream import BlockParts, StreamPaths, VectorStream


class Paths(NamedTuple):
    """The lengths of the longest paths to an event, from both beginnings of a pass."""

    engine_ps: int
    fetch_ps: int

    def end_ps(self, engine_ps: int, fetch_ps: int) -> int:
        """The time of the event: the engine is free and the fetch begins at these times."""
        return max(engine_ps + self.engine_ps, fetch_ps + self.fetch_ps)


class PassTimes(NamedTuple):
    """The events of a pass.

    `start`: vector 1 enters the engine. `computed`: the last one has left it. `first`: vector 1 of
    the result is ready to be stored. `stored`: the last one is in TCM, if the store port is free.
    """

    start: Paths
    computed: Paths
    first: Paths
    stored: Paths


def pass_times(
    step: Pass, stream: VectorStream, paths: StreamPaths, cycles: Callable[[int], int]
) -> PassTimes:
    """The times of a pass over a stream; `cycles(n)` are those of n vectors in registers."""
    path_ps, fetched = paths.ps, stream.fetched
    # The vectors that may hold up the engine. Vector 1 also waits until the engine is free.
    vectors = (1, *stream.bends())
    left = {vector: cycles(stream.count - vector + 1) for vector in vectors}
    one, last_bytes = cycles(1), stream.stored_from(stream.count)
    computed = Paths(
        path_ps(0, left[1]), max(path_ps(fetched(vector), left[vector]) for vector in vectors)
    )
    start = Paths(0, path_ps(fetched(1)))
    if step.reduces:
        # No result before the last vector.
        stored_ps = path_ps(0, 0, stream.stored_bytes)
        stored = Paths(computed.engine_ps + stored_ps, computed.fetch_ps + stored_ps)
        return PassTimes(start, computed, computed, stored)
    entries: Sequence[tuple[int, int]] = [
        (0, 1),
        *((fetched(vector), vector) for vector in vectors),
    ]
    from_engine_ps, *from_fetch_ps = (
        max(
            path_ps(nbytes, left[vector], last_bytes),
            path_ps(nbytes, one, stream.stored_from(vector)),
        )
        for nbytes, vector in entries
    )
    return PassTimes(
        start,
        computed,
        Paths(path_ps(0, one), path_ps(fetched(1), one)),
        Paths(from_engine_ps, max(from_fetch_ps)),
    )


class EngineCycles(NamedTuple):
    """The cycles of the engine: to fill the pipeline, to combine the lanes, of an operation."""

    lanes: int
    fill: int
    tree: int
    of: Callable[[str], int]


class ChainPassTimes(NamedTuple):
    """The bytes at the ports and the events of a pass.

    `start`: vector 1 enters the engine. `streamed`: the last one has left it. `computed`: so has
    the last result of the tail. `first`: vector 1 of the streamed results is ready to be stored.
    `stored`: the last one is in TCM, if the store port is free. The engine takes `least_cycles` for
    vectors in registers. The operations share its time by their `weights`.
    """

    fetched_bytes: int
    streamed_bytes: int
    kept_bytes: int
    start: Paths
    streamed: Paths
    computed: Paths
    first: Paths
    stored: Paths
    least_cycles: int
    stream_weights: tuple[int, ...]
    tail_weights: tuple[int, ...]


class ChainStream:
    """The vectors of one pass of a plan."""

    def __init__(self, plan: ChainPlan, each: ChainPass, cycles: EngineCycles) -> None:
        self._plan, self._pass, self._cycles = plan, each, cycles
        # A lane has 32 bits, and all values of a chain are cut at the same elements.
        self._lanes_each = max(1, *(value.dtype.itemsize // 4 for value in plan.values))
        self._fetched = [self._parts(number) for number in each.fetched]
        self._stored = [self._parts(number) for number in each.streamed]
        # Cycles of a vector, and the number of vectors, of every operation.
        stream, tail = ([plan.step(number) for number in part] for part in (each.stream, each.tail))
        self._stream = [(cycles.of(step.name), self._vectors(step)) for step in stream]
        self._tail = [
            cycles.of(step.name) * self._vectors(step) + cycles.tree * step.reduces for step in tail
        ]
        self._reduces = any(step.reduces for step in stream)

    def times(self, paths: StreamPaths) -> ChainPassTimes:
        """The events of the pass."""
        path_ps, last = paths.ps, self._count()
        turns = self._turns(last)
        tail = sum(self._tail) + self._cycles.tree * self._reduces
        fill = self._cycles.fill

        def longest_ps(first: int, fetched: int, extra: int) -> int:
            """The time from the entry of `first` to the end of the last, and `extra` cycles."""
            return path_ps(fetched, fill + self._computed(last) - self._computed(first - 1) + extra)

        def stored_ps(first: int, fetched: int) -> int:
            """The same to the last byte of the results in TCM, with the best vector to turn at."""
            before = self._computed(first - 1)
            return max(
                path_ps(fetched, fill + self._computed(turn) - before, self._stored_from(turn))
                for turn in turns
                if turn >= first
            )

        entries = [(turn, self._fetched_until(turn)) for turn in turns]
        one = fill + self._computed(1)
        return ChainPassTimes(
            fetched_bytes=sum(block.nbytes for block in self._fetched),
            streamed_bytes=sum(block.nbytes for block in self._stored),
            kept_bytes=sum(self._plan.values[number].nbytes for number in self._pass.kept),
            start=Paths(0, path_ps(self._fetched_until(1))),
            streamed=Paths(longest_ps(1, 0, 0), max(longest_ps(*entry, 0) for entry in entries)),
            computed=Paths(
                longest_ps(1, 0, tail), max(longest_ps(*entry, tail) for entry in entries)
            ),
            first=Paths(path_ps(0, one), path_ps(self._fetched_until(1), one)),
            stored=Paths(stored_ps(1, 0), max(stored_ps(*entry) for entry in entries)),
            least_cycles=fill + self._computed(last) + tail,
            stream_weights=tuple(cycles * vectors for cycles, vectors in self._stream),
            tail_weights=tuple(self._tail),
        )

    def _parts(self, number: int) -> BlockParts:
        value = self._plan.values[number]
        return BlockParts(
            Operand(0, value.shape, value.dtype.name), self._cycles.lanes, self._lanes_each
        )

    def _vectors(self, step: PlannedStep) -> int:
        """The number of vectors of an operation, by its widest operand or its result."""
        values = (step.result, *(self._plan.values[number] for number in step.inputs))
        elements = max(value.numel for value in values)
        return -(-elements * self._lanes_each // self._cycles.lanes)

    def _count(self) -> int:
        widest = max((block.nvectors for block in self._fetched), default=0)
        return max(widest, *(vectors for _, vectors in self._stream))

    def _turns(self, last: int) -> list[int]:
        """The vectors at which a longest path may change from one stage to the next."""
        ends = [block.whole for block in (*self._fetched, *self._stored)]
        ends += [vectors for _, vectors in self._stream]
        near = {1, last, *(end + step for end in ends for step in range(3))}
        return sorted(each for each in near if 1 <= each <= last)

    def _computed(self, vectors: int) -> int:
        return sum(cycles * min(vectors, most) for cycles, most in self._stream)

    def _fetched_until(self, vector: int) -> int:
        return sum(block.until(vector) for block in self._fetched)

    def _stored_from(self, vector: int) -> int:
        return sum(block.nbytes - block.until(vector - 1) for block in self._stored)
