"""The op logs of a run: stored by chunk, merged into one order."""

from random import Random

import pytest

from coordinator.watch.op_logs import OpLogs
from runtime.core.errors import ProtocolError
from runtime.core.trace import OpRecord
from runtime.wire.codec import encode_records


def op(start_ps: int, end_ps: int | None = None, pe: int = 0) -> OpRecord:
    end_ps = start_ps + 1 if end_ps is None else end_ps
    return OpRecord("pe_dma", "read", start_ps, end_ps, cube=0, pe=pe)


def test_records_that_start_together_are_ordered_by_sip_and_then_by_their_index_in_its_log():
    merged = OpLogs.of({1: [op(5), op(3)], 0: [op(5), op(5)]}).merged()
    assert [(o.record.start_ps, o.sip, o.index) for o in merged] == [
        (3, 1, 1),
        (5, 0, 0),
        (5, 0, 1),
        (5, 1, 0),
    ]


def test_logs_of_many_chunks_merge_to_the_sorted_records_however_they_are_cut():
    rng = Random(1)
    logs = {
        sip: [op(rng.randrange(500), pe=rng.randrange(4)) for _ in range(900)] for sip in (0, 2)
    }
    stored = OpLogs()
    for sip in (2, 0):
        rest = logs[sip]
        while rest:
            # Small chunks: more of them than are kept decoded at a time.
            size = rng.randrange(1, 30)
            stored.add(sip, encode_records(rest[:size]), "LP 0")
            rest = rest[size:]
    stored.index()
    expected = sorted(
        (record.start_ps, sip, index) for sip in logs for index, record in enumerate(logs[sip])
    )
    merged = list(stored.merged())
    assert [(o.record.start_ps, o.sip, o.index) for o in merged] == expected
    assert all(o.record == logs[o.sip][o.index] for o in merged)
    assert stored.records() == logs


def test_the_spans_have_the_order_the_times_and_the_components_of_the_records():
    logs = OpLogs.of({0: [op(7, 9, pe=1), op(2, 20)], 1: [op(7, 8)]})
    for span, merged in zip(logs.spans(), logs.merged(), strict=True):
        record = merged.record
        assert (span.sip, span.index) == (merged.sip, merged.index)
        assert (span.start_ps, span.end_ps) == (record.start_ps, record.end_ps)
        assert (span.track.sip, span.track.cube, span.track.pe, span.track.engine) == (
            merged.sip,
            record.cube,
            record.pe,
            record.engine,
        )


def test_a_chunk_that_is_no_list_is_refused_at_once():
    with pytest.raises(ProtocolError, match="LP 3"):
        OpLogs().add(3, b"\xc1", "LP 3")


def test_a_time_of_more_than_64_bits_is_an_error_of_the_peer():
    logs = OpLogs()
    logs.add(3, encode_records([op(1 << 63)]), "LP 3")
    with pytest.raises(ProtocolError, match="LP 3"):
        logs.index()


def test_a_list_of_other_things_than_records_is_refused_and_names_the_peer():
    logs = OpLogs()
    logs.add(3, b"\x92\x01\x02", "LP 3")
    logs.add(4, encode_records([op(1)]), "LP 4")
    with pytest.raises(ProtocolError, match="LP 3"):
        logs.index()
    assert logs.records() == {4: [op(1)]}
