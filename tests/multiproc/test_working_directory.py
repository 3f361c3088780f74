"""The working directory of a run changes no byte of its records."""

import subprocess
import sys
from pathlib import Path

import pytest
from pyarrow import parquet

from tests.support.runs import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.multiproc]
PROGRAM = """\
import numpy as np
from kernbench import torch
from package.kernels import double
x = torch.from_numpy(np.ones(1 << 10, np.float32))
torch.ahbm.synchronize()
double(x)
"""
KERNELS = """\
from kernbench import torch
def double(x):
    y = x + x
    torch.ahbm.synchronize()
"""


def files_of(out: Path) -> dict[str, bytes]:
    names = ["oplog.jsonl", "trace.json", *(f"records/{f.name}" for f in out.glob("records/*"))]
    return {name: (out / name).read_bytes() for name in names}


def test_records_op_log_and_trace_are_the_same_bytes_from_any_directory(tmp_path: Path):
    project = tmp_path.resolve() / "project"
    (project / "package").mkdir(parents=True)
    (project / "train.py").write_text(PROGRAM)
    (project / "package" / "kernels.py").write_text(KERNELS)
    outs = [tmp_path / name for name in ("a", "b", "c")]
    for out, cwd in zip(outs, (project, tmp_path, ROOT), strict=True):
        command = [sys.executable, str(ROOT / "launch.py"), "--out", str(out), "--sips", "2"]
        subprocess.run(
            [*command, str(project / "train.py")], cwd=cwd, check=True, capture_output=True
        )
    first, *others = (files_of(out) for out in outs)
    assert len(first) > 4
    assert all(other == first for other in others)
    lines = parquet.read_table(outs[0] / "records" / "sip0.steps.parquet")["line"].to_pylist()
    assert [line for line in lines if line.startswith("package/kernels.py:")]
    assert not [line for line in lines if str(project) in line]
