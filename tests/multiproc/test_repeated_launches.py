"""Launches that are repeated in several processes: it has to be certain that no message comes."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from runtime.core.compiled.choice import IS_COMPILED
from runtime.wire.environment import FOLD

ROOT = Path(__file__).parents[2]
SCRIPT = """
import numpy as np
from runtime import DPPolicy, tl, torch
from runtime.torch import distributed as dist

def doubled(x, y, size):
    start = (tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)) * size
    tl.store(y + start, tl.load(x + start, size) * 2)

dist.init_process_group()
rows = DPPolicy(cube="row_wise", pe="row_wise")
x = torch.from_numpy(np.arange(128 * 8, dtype=np.float32) + dist.get_rank(), dp=rows)
y = torch.zeros(128 * 8, dp=rows)
torch.ahbm.synchronize()
for turn in range(6):
    # The ranks are at work for different times between two collectives.
    for _ in range(2 + 3 * (dist.get_rank() == turn % 2)):
        torch.launch("doubled", doubled, x, y, 8)
    dist.all_reduce(y)
"""


def run(folder: Path, fold: str) -> dict[str, Any]:
    """The report of a run of the script, with the bytes of its op log."""
    script, out = folder / "script.py", folder / fold
    script.write_text(SCRIPT, encoding="utf-8")
    words = ["--sips", "2", "--out", str(out), str(script)]
    done = subprocess.run(
        [sys.executable, "launch.py", *words],
        cwd=ROOT,
        env={**os.environ, FOLD: fold},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads((out / "run.json").read_text("utf-8"))
    tables = sorted((out / "records").iterdir())
    report["left"] = [(out / "oplog.jsonl").read_bytes(), *(each.read_bytes() for each in tables)]
    return report


@pytest.mark.multiproc
@pytest.mark.skipif(not IS_COMPILED, reason="launches are repeated by the core in C")
def test_launches_between_collectives_are_repeated_in_a_process_for_each_sip(
    tmp_path: Path,
) -> None:
    simulated, repeated = (run(tmp_path, fold) for fold in "01")
    for each in ("digest", "left", "events"):
        assert simulated[each] == repeated[each]
    counts = [sum(each["repeated_kernels"] for each in run["lps"]) for run in (simulated, repeated)]
    assert counts[0] == 0
    # Of the last launches of each turn one at least is repeated, on 128 PEs of each rank.
    assert counts[1] >= 2 * 4 * 128
