"""The op log as a trace of Perfetto."""

import json
from collections.abc import Mapping, Sequence

import msgspec

from coordinator.report.log_text import LogText
from coordinator.report.trace_events import TAIL, TraceThreads, nested
from coordinator.watch.op_logs import OpLogs
from runtime.core.program_ranges import ProgramRange
from runtime.core.trace import Operand, OpRecord


def dma(start_ps: int, end_ps: int, **fields: object) -> OpRecord:
    return OpRecord("pe_dma", "read", start_ps, end_ps, cube=3, pe=0, **fields)  # type: ignore[arg-type]


class Event(msgspec.Struct):
    """An event of the file, as Perfetto reads it."""

    name: str
    ph: str
    pid: int
    tid: int
    ts: float = 0.0
    dur: float = 0.0
    bind_id: str = ""
    flow_out: bool = False
    flow_in: bool = False
    args: dict[str, str | int] = {}


def text(logs: Mapping[int, Sequence[OpRecord]]) -> bytes:
    """The whole file."""
    log_text = LogText(OpLogs.of(logs))
    threads = TraceThreads(log_text.lanes)
    slices = b"".join(slices for _, slices in log_text.pieces(threads.of_lanes))
    return threads.head() + slices + TAIL


def trace_events(logs: Mapping[int, Sequence[OpRecord]]) -> list[Event]:
    return msgspec.convert(json.loads(text(logs))["traceEvents"], list[Event])


def events(*records: OpRecord, phase: str) -> list[Event]:
    return [event for event in trace_events({0: records}) if event.ph == phase]


def thread_names(*records: OpRecord) -> dict[int, str]:
    return {
        e.tid: str(e.args["name"]) for e in events(*records, phase="M") if e.name == "thread_name"
    }


def test_a_sip_is_a_process_and_a_component_a_named_thread():
    log = trace_events({4: [dma(0, 10)]})
    names = {(event.name, event.pid): event.args for event in log if event.ph == "M"}
    assert names["process_name", 5] == {"name": "SIP 4"}
    assert names["thread_name", 5] == {"name": "cube3.pe0.pe_dma"}


def test_threads_are_ordered_from_the_io_chiplet_through_the_cubes():
    records = (
        dma(0, 1),
        OpRecord("m_cpu", "launch", 0, 1, cube=10),
        OpRecord("io_cpu", "launch", 0, 1),
    )
    names = thread_names(*records)
    assert [names[tid] for tid in sorted(names)] == [
        "io.io_cpu",
        "cube3.pe0.pe_dma",
        "cube10.m_cpu",
    ]


def test_times_are_microseconds_to_the_picosecond():
    (event,) = events(dma(1_234_567, 1_234_568), phase="X")
    assert (event.ts, event.dur) == (1.234567, 0.000001)


def test_operations_that_overlap_on_a_component_get_lanes_and_free_lanes_are_used_again():
    records = (dma(0, 10), dma(5, 15), dma(10, 20))
    names = thread_names(*records)
    lanes = [names[event.tid] for event in events(*records, phase="X")]
    assert lanes == ["cube3.pe0.pe_dma", "cube3.pe0.pe_dma #2", "cube3.pe0.pe_dma"]


def test_the_arrow_of_a_transfer_goes_from_the_end_of_its_send_to_the_moment_of_its_arrival():
    sent, received = dma(0, 10, flow=(0, 1, 7)), dma(30, 40, flow=(0, 1, 7), flow_end=True)
    events = trace_events({0: [sent], 1: [received]})
    start, end = (event for event in events if event.bind_id)
    assert (start.pid, start.ts, start.dur, start.flow_out, start.flow_in) == (
        *(1, 0.0, 0.00001),
        *(True, False),
    )
    assert (end.pid, end.ts, end.dur, end.flow_out, end.flow_in) == (2, 0.00004, 0.0, False, True)
    assert start.bind_id == end.bind_id


def test_the_file_is_json_in_nanosecond_display_with_what_the_operation_did():
    trace = json.loads(
        text({0: [dma(0, 1000, address=0x20, nbytes=64, shape=(4, 4), dtype="f32")]})
    )
    assert trace["displayTimeUnit"] == "ns"
    (event,) = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    assert event["args"] == {
        "start_ps": 0,
        "end_ps": 1000,
        "bytes": 64,
        "address": "0x20",
        "operand": "f32[4, 4]",
    }


def test_an_operation_names_what_it_read():
    record = OpRecord(
        "pe_math",
        "mul",
        0,
        1,
        address=0x40,
        nbytes=16,
        shape=(2, 2),
        dtype="f32",
        strides=(8, 1),
        inputs=(Operand(0x20, (2, 2), "f32", (4, 1)), 2.0),
    )
    (event,) = events(record, phase="X")
    assert event.args["operand"] == "f32[2, 2] strides [8, 1]"
    assert event.args["inputs"] == "f32[2, 2] strides [4, 1] at 0x20, 2.0"


def test_the_trace_of_a_run_without_operations_is_json():
    assert json.loads(text({})) == {"traceEvents": [], "displayTimeUnit": "ns"}


def test_the_ranges_of_a_program_are_threads_of_their_own():
    logs = OpLogs.of({1: [dma(0, 10)]})
    log_text = LogText(logs)
    threads = TraceThreads(log_text.lanes)
    written = threads.head() + b"".join(each for _, each in log_text.pieces(threads.of_lanes))
    written += threads.ranges(0, ()) + threads.ranges(1, (ProgramRange("a step", 2_000, 5_000),))
    log = msgspec.convert(json.loads(written + TAIL)["traceEvents"], list[Event])
    [slice_] = [event for event in log if event.name == "a step"]
    assert (slice_.ph, slice_.pid, slice_.ts, slice_.dur) == ("X", 2, 0.002, 0.003)
    names = {e.tid: e.args["name"] for e in log if e.name == "thread_name"}
    assert names == {1: "cube3.pe0.pe_dma", slice_.tid: "program"}


def test_ranges_that_overlap_without_nesting_are_in_several_lanes():
    def one(start_ps: int, end_ps: int) -> ProgramRange:
        return ProgramRange(f"{start_ps} to {end_ps}", start_ps, end_ps)

    inner, outer, overlapping, later = one(1, 4), one(0, 6), one(5, 8), one(8, 9)
    assert nested([inner, outer, overlapping, later]) == [[outer, inner, later], [overlapping]]
    same = one(0, 6)
    # The outer one of two with equal times ends last in the program.
    assert nested([same, outer])[0][0] is outer
