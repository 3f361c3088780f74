"""`kernbench check`: the exit code and the records of runs that differ in one wait."""

from pathlib import Path

import pytest

from runtime.core.run_tables import CALLS
from tests.support.runs import Run, called, kernbench

pytestmark = [pytest.mark.slow, pytest.mark.multiproc]

PROGRAM = '''
import sys

from kernbench import DPPolicy, tl, torch


def kernel(x: tl.Pointer, y: tl.Pointer) -> None:
    """PE 0 stores, computes for longer than that takes, and sends; PE 1 loads what is stored."""
    if tl.program_id(0) == 0:
        block = tl.full(4096, 1.0, tl.float32)
        store = tl.store_async(x, block[0:1])
        done = tl.exp(block)
        if sys.argv[1] == "waits":
            tl.wait(store)
        tl.send("E", done[0:1])
    if tl.program_id(0) == 1:
        tl.recv("W", 1, tl.float32)
        tl.store(y, tl.load(x, 1))


torch.distributed.init_process_group("ahbm")
tensors = [torch.zeros(8, dp=DPPolicy(pe="row_wise", num_cubes=1)) for _ in "xy"]
torch.launch("kernel", kernel, *tensors, queues="pe_ring")
torch.ahbm.synchronize()
'''


def checked(folder: Path, word: str) -> tuple[Run, Run]:
    """The run of the program, and the check of the run."""
    script = folder / "program.py"
    script.write_text(PROGRAM)
    run = kernbench(folder / word, "--sips", "1", str(script), word)
    assert run.code == 0, run.err
    return run, called(folder, "check", word)


def test_a_missing_wait_that_takes_no_time_changes_records_and_exit_code(tmp_path: Path) -> None:
    without, waited = (checked(tmp_path, word) for word in ("none", "waits"))
    assert without[0].report["digest"] == waited[0].report["digest"]
    calls = [
        (run.directory / "records" / f"sip0.{CALLS.name}.parquet").read_bytes()
        for run, _ in (without, waited)
    ]
    assert calls[0] != calls[1]
    assert (without[1].code, waited[1].code) == (1, 0)
    assert "race: element 0 of tensor t1[8]" in without[1].out
    assert "tl.wait for it before" in without[1].out
    assert waited[1].out.endswith("0 races, 0 undefined values\n")


def test_a_run_with_the_check_has_its_exit_code(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    codes = [
        kernbench(tmp_path / word, "--sips", "1", "--check-races", str(script), word).code
        for word in ("none", "waits")
    ]
    assert codes == [1, 0]
