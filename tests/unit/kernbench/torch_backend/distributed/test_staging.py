"""Clean-up of `staging` when Python exits."""

import subprocess
import sys
from importlib.util import find_spec

import pytest

# Not imported: all that this process runs would have the objects of PyTorch beside it.
pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="PyTorch is an extra")

KEPT_IN_A_CYCLE = """
from kernbench.torch_backend.distributed.staging import StagedElements
kept = StagedElements.__new__(StagedElements)
kept._pointer = 1
kept.itself = kept
"""


def test_elements_that_live_until_python_exits_are_not_released() -> None:
    program = [sys.executable, "-c", KEPT_IN_A_CYCLE]
    ended = subprocess.run(program, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
