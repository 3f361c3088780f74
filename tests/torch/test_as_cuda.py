"""A script for GPUs runs unchanged with --as-cuda, as the script with the names of the device."""

import re
from pathlib import Path

import pytest

from tests.torch.conftest import PROGRAMS, Runs

pytestmark = [pytest.mark.slow, pytest.mark.multiproc, pytest.mark.timeout(300)]

PROGRAM = (PROGRAMS / "as_cuda.py").read_text("utf-8")
NAMES = {
    "torch.cuda.amp.GradScaler(": "torch.GradScaler('ahbm', ",
    "ProfilerActivity.CUDA": "ProfilerActivity.PrivateUse1",
    "nccl": "ahbm",
    "cuda": "ahbm",
}


def lines(output: str) -> list[str]:
    return sorted(re.findall(r"^= .*", output, re.MULTILINE))


def test_a_script_for_gpus_has_the_numbers_of_one_for_the_device(run: Runs, tmp_path: Path):
    text = PROGRAM
    for name, own in NAMES.items():
        assert name in text
        text = text.replace(name, own)
    (tmp_path / "own.py").write_text(text)
    expected = lines(run(str(tmp_path / "own.py"), sips=2))
    assert len(expected) == 4
    output = run("as_cuda.py", "--as-cuda", sips=2)
    assert lines(output) == expected
    assert output.count("kernbench: --as-cuda: 'cuda' in this script is the simulated device") == 1


def test_without_the_option_there_is_no_cuda(run: Runs):
    assert "assert torch.cuda.is_available()" in run("as_cuda.py", code=1)
