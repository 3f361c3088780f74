"""PyTorch's own 285 tests of `torch.distributed` pass on the device, or are skipped.

With gloo and 2 ranks PyTorch passes 90 of them. The rest of those is for gloo by name: timeouts and
monitored barriers in wall time, sparse tensors, receives from any rank.
"""

import re
from pathlib import Path

import pytest

from tests.torch.conftest import Runs

pytest.importorskip("expecttest", reason="PyTorch's tests need it: pip install expecttest")

pytestmark = [pytest.mark.nightly, pytest.mark.multiproc, pytest.mark.timeout(900)]


@pytest.mark.parametrize(("ranks", "passes"), [(2, 63), (4, 64)])
def test_no_test_of_pytorch_fails(ranks: int, passes: int, run: Runs, tmp_path: Path):
    output = run("pytorch_suite.py", "--no-trace", sips=ranks, TEMP_DIR=str(tmp_path))
    found = re.findall(r"^= (\w+) \| (.*) \| rank (\d)$", output, re.MULTILINE)
    assert [each for each in found if each[1] not in {"pass", "skip"}] == []
    passed = [name for name, outcome, rank in found if (outcome, rank) == ("pass", "0")]
    assert len(passed) == passes
