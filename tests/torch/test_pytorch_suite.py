"""PyTorch's own 285 tests of `torch.distributed` pass on the device, or are skipped.

With gloo and 2 ranks PyTorch passes 90 of them, of which 8 are for gloo alone: the program lists
them. The device passes the other 82, and 9 of all-to-all, which gloo skips. PyTorch skips the rest,
most of them since they need CUDA devices.
"""

import re
from pathlib import Path

import pytest

from tests.torch.conftest import Runs

pytestmark = [pytest.mark.slow, pytest.mark.multiproc, pytest.mark.timeout(900)]


@pytest.mark.parametrize(("ranks", "passes"), [(2, 91), (4, 110)])
def test_no_test_of_pytorch_fails(ranks: int, passes: int, run: Runs, tmp_path: Path):
    output = run("pytorch_suite.py", "--no-trace", sips=ranks, TEMP_DIR=str(tmp_path))
    found = re.findall(r"^= (\w+) \| (.*) \| rank (\d)$", output, re.MULTILINE)
    assert [each for each in found if each[1] not in {"pass", "skip"}] == []
    passed = [name for name, outcome, rank in found if (outcome, rank) == ("pass", "0")]
    assert len(passed) == passes
