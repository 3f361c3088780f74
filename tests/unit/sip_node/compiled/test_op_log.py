import hashlib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.core.trace import Operand, OpRecord
from sip_node.compiled.choice import IS_COMPILED

if not IS_COMPILED:
    pytest.skip("the reference runs in this process", allow_module_level=True)

from sip_node.compiled.op_log import OpLog

LIMIT = 1 << 63
# The length of a MessagePack number changes at these powers of two.
POWERS = [1 << bits for bits in (5, 7, 8, 15, 16, 31, 32, 63)]
BOUNDS = {sign * power - below for power in POWERS for sign in (1, -1) for below in (0, 1)}
numbers = st.sampled_from(sorted(each for each in BOUNDS if -LIMIT <= each < LIMIT))
small = st.integers(-1, 1 << 20)
texts = st.text(max_size=8) | st.sampled_from(["x" * length for length in (31, 32, 255, 256)])
shapes = st.lists(numbers, max_size=3).map(tuple) | st.just(tuple(range(20)))
operands = st.builds(Operand, numbers | st.just(LIMIT), shapes, texts, shapes)
records = st.builds(
    OpRecord,
    engine=texts,
    name=texts,
    start_ps=numbers,
    end_ps=numbers,
    cube=small,
    pe=small,
    address=numbers,
    nbytes=numbers,
    shape=shapes,
    dtype=texts,
    flow=st.none() | st.tuples(small, small, numbers),
    flow_end=st.booleans(),
    inputs=st.lists(operands | st.floats(allow_nan=False) | numbers, max_size=3).map(tuple),
    strides=shapes,
    axis=st.none() | small,
    checksum=st.integers(0, (1 << 32) - 1),
)


@given(st.lists(records, max_size=3))
def test_a_record_has_the_bytes_that_msgspec_makes_of_it(added: list[OpRecord]) -> None:
    log = OpLog(None)
    for record in added:
        log.add(record)
    expected = b"".join(msgspec.msgpack.encode(record) for record in added)
    assert log.digest(()) == hashlib.sha256(expected).hexdigest()


def test_what_is_no_record_is_refused() -> None:
    with pytest.raises(TypeError, match="7 is no op record"):
        OpLog(None).add(7)  # type: ignore[arg-type]
