import hashlib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.core.compiled.choice import IS_COMPILED
from runtime.core.trace import OpRecord

if not IS_COMPILED:
    pytest.skip("the reference runs in this process", allow_module_level=True)

from sip_node.compiled.op_log import OpLog
from tests.support.op_records import op_records


@given(st.lists(op_records(), max_size=3))
def test_a_record_has_the_bytes_that_msgspec_makes_of_it(added: list[OpRecord]) -> None:
    log = OpLog(None)
    for record in added:
        log.add(record)
    expected = b"".join(msgspec.msgpack.encode(record) for record in added)
    assert log.digest(()) == hashlib.sha256(expected).hexdigest()


def test_what_is_no_record_is_refused() -> None:
    with pytest.raises(TypeError, match="7 is no op record"):
        OpLog(None).add(7)  # type: ignore[arg-type]
