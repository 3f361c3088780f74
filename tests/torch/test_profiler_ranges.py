"""The ranges of `record_function` are in the trace of the run, in simulated time."""

import json
import re
from pathlib import Path

import pytest

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
