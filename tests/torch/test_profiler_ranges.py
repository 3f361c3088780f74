"""PyTorch's profiler in simulated time: its ranges in the trace of the run, kernels in its own."""

import json
import re
from pathlib import Path

import pytest

from runtime.core.trace import OpRecord
from tests.torch.conftest import Runs

pytestmark = [pytest.mark.slow, pytest.mark.multiproc, pytest.mark.timeout(300)]


def test_a_range_has_the_time_of_its_commands(run: Runs, tmp_path: Path):
    [measured] = re.findall(r"^= (\S+)$", run("ranges.py", "--out", str(tmp_path)), re.MULTILINE)
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    slices = [each for each in events if each.get("cat") == "program"]
    products = [each for each in slices if each["name"] == "product"]
    assert len(products) == 2
    # The events were recorded around it, and see the end of what is before them.
    assert 0.9 * float(measured) < 1000 * products[1]["dur"] <= float(measured)
    assert sum(each["name"] == "Optimizer.step#SGD.step" for each in slices) == 2


def test_a_profile_of_pytorch_has_the_launches_in_simulated_time(run: Runs, tmp_path: Path):
    output = run("profiled.py", program_arguments=[str(tmp_path / "trace.json")])
    found: dict[str, list[str]] = {}
    for kind, name, time_us in re.findall(r"^= (\w+) (\w+) (\d+\.\d+)$", output, re.MULTILINE):
        found.setdefault(kind, []).append(f"{name} {time_us}")
    assert len(found["expected"]) == 2
    assert found["event"] == found["average"] == found["trace"] == found["expected"]
    assert "= of the host alone 0\n" in output
    assert "= of two steps [4]\n" in output


def test_launches_of_one_kernel_are_apart_where_they_share_a_pe_or_follow_each_other():
    from kernbench.torch_backend.runtime.device_profile import LaunchTime, launches

    def record(name: str, pe: int, start_ps: int, end_ps: int, engine: str = "pe_cpu") -> OpRecord:
        return OpRecord(engine, name, start_ps, end_ps, cube=0, pe=pe)

    records = [
        record("kernel add", 1, 12, 30),
        record("kernel add", 0, 10, 20),
        record("load", 0, 11, 15, engine="pe_dma"),
        record("kernel mul", 2, 15, 40),
        record("kernel add", 0, 20, 35),
        record("kernel add", 2, 36, 50),
    ]
    assert launches(records) == [
        LaunchTime("add", 10, 30, 2),
        LaunchTime("mul", 15, 40, 1),
        LaunchTime("add", 20, 35, 1),
        LaunchTime("add", 36, 50, 1),
    ]
