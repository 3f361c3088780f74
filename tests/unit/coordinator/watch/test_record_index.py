"""C reads the records of an op log as the interpreter does, or refuses the chunk."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.watch.op_logs import OpLogs, Track
from coordinator.watch.record_index import RecordIndex
from runtime.core.compiled.choice import IS_COMPILED
from runtime.core.errors import ProtocolError
from runtime.core.trace import OpRecord
from runtime.wire.codec import encode_records
from tests.support.interpreted import interpreted
from tests.support.op_records import op_records

if not IS_COMPILED:
    pytest.skip("the interpreter runs in this process", allow_module_level=True)

Interpreted = interpreted("coordinator.watch.record_index").RecordIndex
chunks = st.lists(op_records(), max_size=20).map(encode_records)


class _Tracks(list[Track]):
    def number(self, sip: int, cube: int, pe: int, engine: str) -> int:
        track = Track(sip, cube, pe, engine)
        if track not in self:
            self.append(track)
        return self.index(track)


@given(st.lists(chunks, max_size=3))
def test_times_and_components_are_those_of_the_interpreter(of_sips: list[bytes]) -> None:
    expected_tracks, tracks = _Tracks(), _Tracks()
    by_python, index = Interpreted(expected_tracks.number), RecordIndex(tracks.number)
    for sip, chunk in enumerate([*of_sips, *of_sips]):
        *read, offsets = index.read(sip, chunk)
        assert tuple(read) == by_python.read(sip, chunk)[:3]
        assert memoryview(offsets).cast("I").tolist() == _offsets(chunk)
    assert tracks == expected_tracks


def _offsets(chunk: bytes) -> list[int]:
    records = msgspec.msgpack.decode(chunk, type=list[msgspec.Raw])
    offset, offsets = len(chunk) - sum(map(len, map(bytes, records))), list[int]()
    for record in records:
        offsets.append(offset)
        offset += len(bytes(record))
    return offsets


@given(chunks, st.data())
def test_bytes_that_are_changed_are_refused_or_read_as_by_the_interpreter(
    chunk: bytes, data: st.DataObject
) -> None:
    place = data.draw(st.integers(0, len(chunk) - 1))
    changed = data.draw(
        st.binary(max_size=3).map(lambda new: chunk[:place] + new + chunk[place + 1 :])
        | st.just(chunk[:place])
    )
    index = RecordIndex(_Tracks().number)
    try:
        read = index.read(0, changed)
    except ValueError:
        return
    assert read[:3] == Interpreted(_Tracks().number).read(0, changed)[:3]


def test_a_chunk_in_another_form_of_messagepack_is_read_as_well() -> None:
    # Trailing fields with their defaults may be missing, and a length may take more bytes.
    chunk = b"\xdd\x00\x00\x00\x01" + msgspec.msgpack.encode(["pe_dma", "read", 5, 7])
    with pytest.raises(ValueError, match="not the fields of a record"):
        RecordIndex(_Tracks().number).read(0, chunk)
    logs = OpLogs()
    logs.add(0, chunk, "LP 0")
    logs.index()
    assert logs.records() == {0: [OpRecord("pe_dma", "read", 5, 7)]}
    assert [span.end_ps for span in logs.spans()] == [7]


@pytest.mark.parametrize("text", [b"\xa2\xc3\x28", b"\xa1\xff"])
def test_a_text_that_is_no_utf8_is_an_error_of_the_peer(text: bytes) -> None:
    logs = OpLogs()
    chunk = encode_records([OpRecord("E", "read", 5, 7)]).replace(b"\xa1E", text)
    logs.add(0, chunk, "LP 3")
    with pytest.raises(ProtocolError, match="LP 3"):
        logs.index()
