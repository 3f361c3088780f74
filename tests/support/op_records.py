"""Random records of an op log, with the numbers at which an encoding changes."""

from hypothesis import strategies as st

from runtime.core.trace import Operand, OpRecord

LIMIT = 1 << 63
# The length of a MessagePack number changes at these powers of two.
_POWERS = [1 << bits for bits in (5, 7, 8, 15, 16, 31, 32, 63)]
_BOUNDS = {sign * power - below for power in _POWERS for sign in (1, -1) for below in (0, 1)}
numbers = st.sampled_from(sorted(each for each in _BOUNDS if -LIMIT <= each < LIMIT))
_small = st.integers(-1, 1 << 20)
_texts = st.text(max_size=8) | st.sampled_from(["x" * length for length in (31, 32, 255, 256)])
_shapes = st.lists(numbers, max_size=3).map(tuple) | st.just(tuple(range(20)))
_operands = st.builds(Operand, numbers | st.just(LIMIT), _shapes, _texts, _shapes)
_inputs = st.lists(_operands | st.floats(allow_nan=False) | numbers, max_size=3).map(tuple)


def op_records(times: st.SearchStrategy[int] = numbers) -> st.SearchStrategy[OpRecord]:
    """Records with these times."""
    return st.builds(
        OpRecord,
        engine=_texts,
        name=_texts,
        start_ps=times,
        end_ps=times,
        cube=_small,
        pe=_small,
        address=numbers,
        nbytes=numbers,
        shape=_shapes,
        dtype=_texts,
        flow=st.none() | st.tuples(_small, _small, numbers),
        flow_end=st.booleans(),
        inputs=_inputs,
        strides=_shapes,
        axis=st.none() | _small,
        checksum=st.integers(0, (1 << 32) - 1),
    )
