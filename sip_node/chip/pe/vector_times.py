"""The times of the passes of a vector operation, as offsets to when its stages become free.

All vectors of a pass flow through fetch port, engine and store port, each of which serves them in
order. The pass begins with the engine free at one time and its operands at the fetch port from
another: so the end of a vector comes after the longer of two paths, and both have a length
that depends on sizes and types only.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from runtime.language.passes import Pass
from sip_node.chip.pe.vector_stream import StreamPaths, VectorStream


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
    step: Pass,
    stream: VectorStream,
    paths: StreamPaths,
    cycles: Callable[[int], int],
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
