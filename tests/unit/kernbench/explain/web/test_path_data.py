"""The critical path in a page: pieces that tile the run, texts, and routes link by link."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from kernbench.explain.records import RecordedRun, open_run
from kernbench.explain.web.path_data import path_data
from kernbench.explain.why.path import CriticalPath, critical_path
from runtime.model.addresses import AddressMap
from tests.support.hand_made_runs import a_slot_and_its_credit
from tests.support.run_tables import tables, write_run


@pytest.fixture(name="records")
def _records(tmp_path: Path) -> RecordedRun:
    topology = open_run(write_run(tmp_path / "empty", [tables()] * 2, 0)).topology
    slot = AddressMap(topology).pe_tcm_addr(1, 0, 0, 0)
    return open_run(write_run(tmp_path / "run", a_slot_and_its_credit(slot), 1000))


@pytest.fixture(name="path")
def _path(records: RecordedRun) -> CriticalPath:
    return critical_path(records)


def texts(data: dict[str, Any], column: str) -> list[str]:
    return [data["texts"][code] for code in data["pieces"][column]]


def route_of(data: dict[str, Any], what: str) -> list[tuple[int, list[str]]]:
    number = data["pieces"]["route"][texts(data, "what").index(what)]
    return [(sip, [data["links"][at] for at in passed]) for sip, passed in data["routes"][number]]


def test_a_piece_has_its_times_and_texts(records: RecordedRun, path: CriticalPath) -> None:
    data = path_data(records, path.pieces)
    assert data["pieces"]["end_ps"] == [piece.end_ps for piece in path.pieces]
    for column in ("what", "component", "line", "cause", "kind"):
        assert texts(data, column) == [str(getattr(piece, column)) for piece in path.pieces]


def test_the_route_of_a_slot_leads_link_by_link_to_the_other_sip(
    records: RecordedRun, path: CriticalPath
) -> None:
    data = path_data(records, path.pieces)
    there = route_of(data, "slot sip0.cube0.pe0 -> sip1.cube0.pe0")
    [(near, out), (crossed, between), (far, into)] = there
    assert (near, crossed, far, between) == (0, 0, 1, ["SIP 0 -> SIP 1"])
    for links, begin, end in ((out, "cube0.pe0", "io.io_noc"), (into, "io.io_noc", "cube0.pe0")):
        ends = [link.split("->") for link in links]
        assert (ends[0][0], ends[-1][1]) == (begin, end)
        assert all(one[1] == other[0] for one, other in pairwise(ends))
    # The credit takes the links of the other direction.
    back = route_of(data, "credit sip1.cube0.pe0 -> sip0.cube0.pe0")
    assert [sip for sip, _ in back] == [1, 1, 0]
    assert back[1][1] == ["SIP 1 -> SIP 0"]


def test_pieces_beyond_the_limit_are_joined_without_a_gap(
    records: RecordedRun, path: CriticalPath
) -> None:
    data = path_data(records, path.pieces, most=3)
    pieces = data["pieces"]
    assert len(pieces["begin_ps"]) < len(path.pieces)
    assert pieces["begin_ps"] == [0, *pieces["end_ps"][:-1]]
    assert pieces["end_ps"][-1] == 1000
    longest = sorted(path.pieces, key=lambda piece: -piece.length_ps)[:3]
    spans = list(zip(pieces["begin_ps"], pieces["end_ps"], strict=True))
    assert all((piece.begin_ps, piece.end_ps) in spans for piece in longest)
    # 60, 50 and 3 ps before the first slot: of the launch, and two others.
    assert texts(data, "what")[0] == "way of KernelLaunchMsg and 2 more"
