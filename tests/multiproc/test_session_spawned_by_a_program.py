import json
import os
import signal
from pathlib import Path

import pytest

from runtime.torch.multiprocessing import ProcessExitedException, ProcessRaisedException, spawn
from tests.support.sessions import is_running

pytestmark = [pytest.mark.slow, pytest.mark.multiproc]


def _leave_a_note(rank: int, directory: str) -> None:
    Path(directory, f"rank{rank}").write_text(str(os.getpid()))


def _raise_on_rank_1(rank: int) -> None:
    if rank == 1:
        raise KeyError("missing")


def _be_killed_on_rank_1(rank: int) -> None:
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)


def test_every_rank_is_its_own_process_and_the_run_leaves_a_report_and_prints_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("KERNBENCH_OUT", str(tmp_path / "out"))
    spawn(_leave_a_note, args=(str(tmp_path),), nprocs=2)
    pids = {int((tmp_path / f"rank{rank}").read_text()) for rank in (0, 1)}
    assert len(pids | {os.getpid()}) == 3
    run = json.loads((tmp_path / "out" / "run.json").read_text())
    assert (run["passed"], run["bench"], run["sips"]) == (True, "_leave_a_note", 2)
    # The terminal belongs to the program: no table, no lines of `why`.
    assert tuple(capfd.readouterr()) == ("", "")


def test_a_program_continues_while_its_ranks_run_and_joins_them_later(tmp_path: Path):
    context = spawn(_leave_a_note, args=(str(tmp_path),), nprocs=2, join=False)
    assert context is not None
    pids = context.pids()
    assert context.join()
    assert pids == [int((tmp_path / f"rank{rank}").read_text()) for rank in (0, 1)]
    assert not any(is_running(pid) for pid in pids)


def test_a_rank_that_raises_is_reported_with_its_own_traceback():
    with pytest.raises(ProcessRaisedException, match="in _raise_on_rank_1") as caught:
        spawn(_raise_on_rank_1, nprocs=2)
    assert caught.value.error_index == 1
    assert "KeyError: 'missing'" in caught.value.msg


def test_a_rank_that_is_killed_is_reported_with_the_signal():
    with pytest.raises(ProcessExitedException) as caught:
        spawn(_be_killed_on_rank_1, nprocs=2)
    assert (caught.value.error_index, caught.value.exit_code, caught.value.signal_name) == (
        1,
        -9,
        "SIGKILL",
    )
