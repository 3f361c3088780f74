import json

import pytest

from kernbench.explain.records import open_run
from kernbench.explain.trace.kineto_file import write_kineto
from kernbench.explain.trace.selection import select
from tests.unit.kernbench.explain.trace.hand_made import TOTAL_PS, hand_made_run


@pytest.fixture
def traces(tmp_path):
    records = open_run(hand_made_run(tmp_path / "run"))
    directory = tmp_path / "kineto"
    directory.mkdir()
    for sip in range(2):
        write_kineto(records, sip, select(None, None, 2, TOTAL_PS), directory / f"rank{sip}.json")
    return directory


def test_a_file_names_its_rank_and_the_world(traces):
    trace = json.loads((traces / "rank1.json").read_text())

    assert trace["distributedInfo"] == {"backend": "ahbm", "rank": 1, "world_size": 2}


def test_a_launch_is_one_kernel_and_its_call_has_the_same_correlation(traces):
    events = json.loads((traces / "rank0.json").read_text())["traceEvents"]

    kernels = {each["name"]: each for each in events if each["cat"] == "kernel"}
    assert {name: (each["ts"], each["dur"]) for name, each in kernels.items()} == {
        "gemm": (2.0, 8.0),
        "ncclDevKernel_all_reduce.ring": (6.0, 6.0),
    }
    calls = {e["args"]["correlation"]: e for e in events if e["cat"] == "cuda_runtime"}
    assert calls[kernels["gemm"]["args"]["correlation"]]["args"]["line"] == "train.py:3"
    assert kernels["gemm"]["args"]["stream"] == 0


# Its package depends on JupyterLab, so that only `make test-nightly` installs it.
@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore")
def test_holistic_trace_analysis_finds_the_overlap_of_the_hand_made_run(traces):
    hta = pytest.importorskip("hta.trace_analysis", reason="needs HolisticTraceAnalysis")

    analysis = hta.TraceAnalysis(trace_dir=str(traces))
    overlap = analysis.get_comm_comp_overlap(visualize=False)
    parts = analysis.get_temporal_breakdown(visualize=False)

    # The product runs from 2 to 10 us, the all-reduce from 6 to 12: 4 of its 6 us overlap.
    assert overlap["rank"].tolist() == [0, 1]
    assert overlap["comp_comm_overlap_pctg"].tolist() == [66.67, 66.67]
    assert parts["compute_time(us)"].tolist() == [8, 8]
    assert parts["non_compute_time(us)"].tolist() == [2, 2]
