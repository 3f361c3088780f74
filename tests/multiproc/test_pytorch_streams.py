"""Streams, events and time with real processes: docs/pytorch.md."""

from pathlib import Path

import pytest

from tests.support.runs import kernbench

pytestmark = [pytest.mark.slow, pytest.mark.multiproc]

PROGRAM = """
import numpy as np
from kernbench import BenchOutcome, DPPolicy, bench, tl, torch
dist, ahbm = torch.distributed, torch.ahbm

N, PE_0 = 1024, DPPolicy(num_cubes=1, num_pes=1)

def add(x, times):
    values = tl.load(x, N)
    for _ in range(times):
        values = values + 1
    tl.store(x, values)

def timed(launches, x):
    start, end = (ahbm.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(launches):
        torch.launch("add", add, x, 1)
    end.record()
    end.synchronize()
    return start.elapsed_time(end)

@bench("streams", "streams, events and time")
def main(rank: int) -> BenchOutcome:
    ahbm.set_device(rank)
    dist.init_process_group("ahbm")
    ranks = dist.get_world_size()
    began_ns = ahbm.now_ns()
    array = np.zeros(N, np.float32)
    x, y, z = (torch.from_numpy(array, dp=PE_0) for _ in range(3))
    array[:] = 77
    torch.launch("add", add, x, 1)
    x[:2] = 5
    assert ahbm.now_ns() == began_ns, "constructors, copies and launches do not block"
    assert x[:3].tolist() == [5, 5, 1], "reads do, and see what was queued before them"
    assert ahbm.now_ns() > began_ns

    # N launches on a stream take N equal periods.
    one, five, nine = (timed(count, x) for count in (1, 5, 9))
    assert np.isclose(nine - five, five - one, rtol=1e-9), (one, five, nine)
    period_ns = (nine - five) / 4 * 1e6

    # Streams, events, and the order that they give.
    side = ahbm.Stream()
    assert ahbm.current_stream() == ahbm.default_stream() != side
    torch.launch("add", add, x, 100)
    event = ahbm.current_stream().record_event()
    with ahbm.stream(side):
        assert ahbm.current_stream() == side
        y.copy_(1)
        early = side.record_event()
        event.wait()
        late = side.record_event()
    early.synchronize()
    assert (early.query(), event.query(), late.query()) == (True, False, False)
    side.synchronize()
    assert (event.query(), late.query(), side.query()) == (True, True, True)
    before_ns = ahbm.now_ns()
    ahbm.synchronize()
    assert ahbm.default_stream().query()

    # The errors of PyTorch.
    for start, end, kind, text in (
        (ahbm.Event(), ahbm.Event(), ValueError, "Both events must be created with"),
        (ahbm.Event(True), ahbm.Event(True), ValueError, "Both events must be recorded before"),
    ):
        try:
            start.elapsed_time(end)
        except kind as error:
            assert str(error).startswith(text), error
        else:
            raise AssertionError(text)

    # A collective is a command: wait() makes the stream wait, and not the rank.
    total = torch.full(N, rank + 1, dp=PE_0)
    ahbm.synchronize()
    before_ns = ahbm.now_ns()
    work = dist.all_reduce(total, async_op=True)
    beside = torch.launch("add", add, z, 1)
    work.wait()
    behind = torch.launch("add", add, z, 1)
    assert ahbm.now_ns() == before_ns and not work.is_completed()
    with side:
        assert total[:2].tolist() == [ranks * (ranks + 1) / 2] * 2, "its tensors order it"
    assert work.is_completed()
    ahbm.synchronize()
    assert beside.released_ps < work.handle.device_done_ps <= behind.released_ps

    with ahbm.profile() as prof:
        torch.launch("add", add, z, 3)
    assert [each.count for each in prof.totals() if each.name == "add"] == [3]
    assert z[:1].tolist() == [5]
    print(f"rank {rank}: {period_ns:.3f} ns a launch, {len(prof.records)} records")
    dist.destroy_process_group()
    return BenchOutcome("streams", ok=1, wrong=0)
"""


def test_commands_on_streams_behave_as_in_pytorch_and_alike_for_every_number_of_processes(
    tmp_path: Path,
) -> None:
    script = tmp_path / "streams.py"
    script.write_text(PROGRAM)
    bench = ("--bench", f"{script}:streams", "--sips", "2")
    runs = [
        kernbench(tmp_path / f"procs{procs}", *bench, "--procs", str(procs), *options)
        for procs, options in ((1, ()), (2, ("--verify-data",)))
    ]
    assert [run.code for run in runs] == [0, 0], runs[0].err + runs[1].err
    assert runs[0].report["digest"] == runs[1].report["digest"]
    lines = [sorted(line for line in run.out.splitlines() if line[:4] == "rank") for run in runs]
    assert lines[0] == lines[1]
    assert len(lines[0]) == 2


REFUSED = """
from runtime import torch
from runtime.core.requests import MemoryReadMsg
from runtime.device.rank.rank_state import running_rank

def main():
    torch.distributed.init_process_group("ahbm")
    address = running_rank().addresses.pe_hbm_addr(0, 0, 0, 0)
    running_rank().device.submit([MemoryReadMsg(address, 0)], "copying nothing")

if __name__ == "__main__":
    main()
"""


def test_a_refused_request_names_its_purpose_and_the_line_that_submitted_it(tmp_path: Path) -> None:
    script = tmp_path / "refused.py"
    script.write_text(REFUSED)
    run = kernbench(tmp_path / "run", "--sips", "1", str(script))
    assert run.code != 0
    assert "copying nothing: MemoryReadMsg" in run.err
    assert "refused.py" in run.err
