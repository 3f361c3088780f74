import zlib
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import product

import numpy as np
import pytest

from kernbench.explain.records import open_run
from kernbench.explain.trace.counters import Counter
from kernbench.explain.trace.perfetto_file import PerfettoFile
from kernbench.explain.trace.perfetto_files import write_perfetto
from kernbench.explain.trace.selection import select
from tests.unit.kernbench.explain.trace.hand_made import TOTAL_PS, US_PS, hand_made_run

protos = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
EVENT = protos.TrackEvent


@dataclass
class ReadTrace:
    """Contents of a trace file: slices as (name, begin_ns, end_ns), by path of tracks."""

    slices: dict = field(default_factory=lambda: defaultdict(list))
    counters: dict = field(default_factory=lambda: defaultdict(list))
    flows: dict = field(default_factory=lambda: defaultdict(list))
    arguments: dict = field(default_factory=dict)


def packets_of(trace):
    for block in trace.packet:
        inner = protos.Trace()
        inner.ParseFromString(zlib.decompress(block.compressed_packets))
        yield from inner.packet


def read(path) -> ReadTrace:
    trace, paths, open_slices, found = protos.Trace(), {}, defaultdict(list), ReadTrace()
    trace.ParseFromString(path.read_bytes())
    for packet in packets_of(trace):
        if packet.HasField("track_descriptor"):
            described = packet.track_descriptor
            above = paths[described.parent_uuid] if described.parent_uuid else ()
            paths[described.uuid] = (*above, described.name)
            continue
        event, track = packet.track_event, paths[packet.track_event.track_uuid]
        if event.type == EVENT.TYPE_COUNTER:
            value = event.counter_value or event.double_counter_value
            found.counters[track].append((packet.timestamp, value))
        elif event.type == EVENT.TYPE_SLICE_BEGIN:
            open_slices[track].append((event.name, packet.timestamp))
            for flow in event.flow_ids:
                found.flows[flow].append((track, event.name, "from"))
            for flow in event.terminating_flow_ids:
                found.flows[flow].append((track, event.name, "to"))
            found.arguments[*track, event.name] = {
                each.name: each.string_value or each.int_value for each in event.debug_annotations
            }
        else:
            name, begin = open_slices[track].pop()
            found.slices[track].append((name, begin, packet.timestamp))
    assert not any(open_slices.values()), "a slice has no end"
    return found


def written(tmp_path, *, ranks=None, interval=None, most_slices=1_000_000):
    records = open_run(hand_made_run(tmp_path / "run"))
    chosen = select(ranks, interval, 2, TOTAL_PS)
    return list(write_perfetto(records, chosen, tmp_path, most_slices))


def test_tracks_are_grouped_by_sip_cube_and_pe(tmp_path):
    (file,) = written(tmp_path)
    trace = read(file.path)

    pe = ("SIP 0", "cube 0", "PE 0")
    assert trace.slices[*pe, "kernels (kernels)"] == [
        ("load", 2_000, 5_000),
        ("dot", 5_000, 10_000),
        ("gemm", 2_000, 10_000),
    ]
    assert trace.slices[*pe, "pe_dma"] == [
        ("load", 2_000, 5_000),
        ("ipcq_send", 6_000, 7_000),
        ("ipcq_recv", 9_000, 10_000),
    ]
    assert trace.slices["SIP 1", "program"][-1] == ("main", 0, 20_000)
    assert trace.slices["SIP 0", "host and IO chiplet", "stream 1"] == [
        ("all_reduce", 5_000, 13_000)
    ]


def test_tracks_of_a_group_have_an_order_of_numbers(tmp_path):
    tracks = [f"SIP {sip}" for sip in (10, 2)]
    below = ["links", "cube 12", "cube 2", "host and IO chiplet", "program"]
    with (tmp_path / "trace").open("wb") as file:
        made = PerfettoFile(file.write, 11, {}, {})
        for sip, track in product(tracks, below):
            made.add_counter(Counter((sip, track, "x"), "", np.array([0]), np.array([1])))
        made.finish()
    trace = protos.Trace()
    trace.ParseFromString((tmp_path / "trace").read_bytes())
    found = [
        packet.track_descriptor
        for packet in packets_of(trace)
        if packet.HasField("track_descriptor")
    ]

    # Perfetto has those without parent in the order of their names, the others by their ranks.
    roots = {each.name: each.uuid for each in found if each.name.startswith("SIP")}
    assert sorted(roots) == ["SIP 02", "SIP 10"]
    of_sip = [each for each in found if each.parent_uuid == roots["SIP 02"]]
    ordered = [each.name for each in sorted(of_sip, key=lambda each: each.sibling_order_rank)]
    assert ordered == ["program", "host and IO chiplet", "cube 2", "cube 12", "links"]


def test_a_flow_goes_from_the_send_of_a_message_to_its_arrival_at_the_peer(tmp_path):
    (file,) = written(tmp_path)

    ends = {
        tuple(sorted((track[0], name, end) for track, name, end in flow))
        for flow in read(file.path).flows.values()
    }

    assert ends == {
        (("SIP 0", "ipcq_send", "from"), ("SIP 1", "arrival", "to")),
        (("SIP 0", "arrival", "to"), ("SIP 1", "ipcq_send", "from")),
    }


def test_an_arrival_is_one_moment_at_which_the_message_is_there(tmp_path):
    (file,) = written(tmp_path)

    arrivals = read(file.path).slices["SIP 0", "cube 0", "PE 0", "pe_ipcq"]

    assert arrivals == [("arrival", 9_000, 9_000)]


def test_counters_have_outstanding_requests_full_slots_and_loads_of_links(tmp_path):
    (file,) = written(tmp_path)
    counters = read(file.path).counters

    pe = ("SIP 0", "cube 0", "PE 0")
    assert counters[*pe, "outstanding DMA"] == [
        *[(2_000, 1), (5_000, 0), (6_000, 1)],
        *[(7_000, 0), (9_000, 1), (10_000, 0)],
    ]
    assert counters[*pe, "full slots"] == [(9_000, 1), (10_000, 0)]
    # 256 B and 512 B more in the product; 64 B in the all-reduce from 6 to 7 us, then none.
    assert counters[*pe, "scratch"] == [
        *[(2_000, 256), (5_000, 768), (6_000, 832), (7_000, 768), (10_000, 0)]
    ]
    # Bins of 1,024 ps: half of bin 0, nothing in bins 1 and 2, all of bin 3.
    link = ("SIP 0", "links", "a->b")
    assert counters[*link, "load"] == [(0, 50.0), (1, 0.0), (3, 100.0), (4, 0.0)]
    assert counters[*link, "queue"][0] == (0, 0.25)


def test_an_operation_names_the_line_of_the_call_that_issued_it(tmp_path):
    (file,) = written(tmp_path)
    arguments = read(file.path).arguments

    pe = ("SIP 0", "cube 0", "PE 0")
    assert arguments[*pe, "pe_gemm", "gemm"]["line"] == "kernel.py:5"
    assert arguments[*pe, "pe_dma", "ipcq_send"]["line"] == "ring.py:20"
    assert arguments[*pe, "pe_dma", "load"]["start_ps"] == 2 * US_PS


def test_only_the_selected_ranks_and_times_are_written(tmp_path):
    (file,) = written(tmp_path, ranks="1", interval="8us..11us")
    trace = read(file.path)

    assert {track[0] for track in trace.slices} == {"SIP 1"}
    names = {name for slices in trace.slices.values() for name, _, _ in slices}
    assert {"gemm", "arrival", "ipcq_recv"} <= names
    assert not {"ipcq_send", "load"} & names


def test_a_long_run_is_split_and_a_slice_over_the_cut_is_in_both_files(tmp_path):
    files = written(tmp_path, most_slices=10)

    assert [file.path.name for file in files] == ["trace-1.pftrace", "trace-2.pftrace"]
    assert files[0].end_ps == files[1].begin_ps
    assert (files[0].begin_ps, files[1].end_ps) == (0, TOTAL_PS)
    for file in files:
        assert ("main", 0, 20_000) in read(file.path).slices["SIP 0", "program"]
