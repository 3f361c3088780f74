"""Times of a pass against a simulation of its vectors, one after the other."""

from fractions import Fraction
from math import ceil

from hypothesis import given
from hypothesis import strategies as st

from runtime.core.trace import Operand
from runtime.language.chains.passes import passes
from sip_node.chip.fabric.server import Server
from sip_node.chip.pe.compute.vector_stream import Clock, StreamPaths, VectorStream
from sip_node.chip.pe.compute.vector_times import PassTimes, pass_times

LANES = 8
FETCH, CLOCK, STORE = Server("fetch", 3), Clock(3), Server("store", 7)
FILL, TREE = 4, 6
BLOCKS = st.lists(st.sampled_from([(40,), (1,), (8,), (5, 8)]), max_size=3)


def simulated(name: str, stream: VectorStream, engine_ps: int, fetch_ps: int) -> PassTimes | None:
    """(start, computed, first, stored) of a pass, vector after vector."""
    (step,) = passes(name)
    fetched = Fraction(fetch_ps)
    free = stored = Fraction(engine_ps)
    start = first = None
    for vector in range(1, stream.count + 1):
        fetched += (stream.fetched(vector) - stream.fetched(vector - 1)) * FETCH.byte_ps
        enter = max(fetched, free)
        start = enter if start is None else start
        # The pipeline fills once, before its first result.
        free = enter + CLOCK.cycle_ps
        result = free + FILL * CLOCK.cycle_ps
        first = result if first is None else first
        nbytes = stream.stored_from(vector) - stream.stored_from(vector + 1)
        stored = max(stored, result) + nbytes * STORE.byte_ps
    computed = free + (FILL + TREE * step.reduces) * CLOCK.cycle_ps
    if step.reduces:
        first, stored = computed, ceil(computed) + ceil(stream.stored_bytes * STORE.byte_ps)
    assert start is not None
    assert first is not None
    return tuple(ceil(each) for each in (start, computed, first, stored))


@given(BLOCKS, st.sampled_from(["add", "sum"]), st.integers(0, 5000), st.integers(0, 5000))
def test_the_events_of_a_pass_are_those_of_its_vectors(
    shapes: list[tuple[int, ...]], name: str, engine_ps: int, fetch_ps: int
) -> None:
    operands = [Operand(0, shape, "f32") for shape in (shapes or [(40,)])]
    result = Operand(0, (1,) if name == "sum" else (5, 8), "f32")
    stream = VectorStream(operands, result, LANES)
    (step,) = passes(name)
    paths = StreamPaths(FETCH, CLOCK, STORE)

    def cycles(vectors: int) -> int:
        return FILL + vectors + TREE * step.reduces

    times = pass_times(step, stream, paths, cycles)
    found = tuple(each.end_ps(engine_ps, fetch_ps) for each in times)
    assert found == simulated(name, stream, engine_ps, fetch_ps)
