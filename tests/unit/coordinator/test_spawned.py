"""`torch.multiprocessing.spawn`: the exceptions of PyTorch, and what it refuses."""

import pickle
import signal
from threading import Lock

import pytest

from coordinator.spawned import raise_as_torch_does
from coordinator.watch.failure import Interrupted, LpDied, LpProcess, RankFailed
from runtime.core.errors import ConfigError, UsageError
from runtime.torch.multiprocessing import ProcessExitedException, ProcessRaisedException, spawn
from runtime.wire.control import Failed
from runtime.wire.environment import COORDINATOR_PID

PROCESS = LpProcess(1, (2, 3), 4711)


def _rank_program(rank: int) -> None:
    pass


def test_a_rank_that_raised_is_torchs_exception_with_its_traceback():
    failed = Failed(1, 3, "ValueError", "no", "Traceback:\n", 5_000)
    with pytest.raises(ProcessRaisedException) as caught:
        raise_as_torch_does(RankFailed(PROCESS, failed))
    assert (caught.value.error_index, caught.value.error_pid) == (3, 4711)
    assert str(caught.value) == (
        "\n\n-- Process 3 terminated with the following error:\nTraceback:\nValueError: no\n"
    )
    assert caught.value.__notes__ == ["rank 3 failed at 5.000 ns"]
    assert str(caught.value.__cause__) == "rank 3 raised ValueError at 5.000 ns: no"


def test_a_rank_that_exits_with_a_code_is_torchs_exception_with_the_code():
    failed = Failed(1, 3, "ProgramExited", "", "", 5_000, exit_code=7)
    with pytest.raises(ProcessExitedException) as caught:
        raise_as_torch_does(RankFailed(PROCESS, failed))
    assert str(caught.value) == "process 3 terminated with exit code 7"
    assert (caught.value.error_index, caught.value.exit_code, caught.value.signal_name) == (
        3,
        7,
        None,
    )
    assert str(caught.value.__cause__) == "rank 3 exited with code 7 at 5.000 ns"
    assert caught.value.__notes__ == ["rank 3 exited with code 7 at 5.000 ns"]


def test_a_process_that_was_killed_is_torchs_exception_with_the_signal():
    with pytest.raises(ProcessExitedException) as caught:
        raise_as_torch_does(LpDied(PROCESS, -9, 5_000))
    assert str(caught.value) == "process 2 terminated with signal SIGKILL"
    assert (caught.value.error_index, caught.value.exit_code, caught.value.signal_name) == (
        2,
        -9,
        "SIGKILL",
    )


def test_ctrl_c_is_the_callers():
    with pytest.raises(KeyboardInterrupt):
        raise_as_torch_does(Interrupted(signal.SIGINT, 0))


def test_other_errors_are_raised_as_they_are():
    error = ConfigError("f", "k", "p")
    with pytest.raises(ConfigError) as caught:
        raise_as_torch_does(error)
    assert caught.value is error


def test_the_exceptions_survive_pickling():
    error = ProcessExitedException("text", 1, 2, -9, "SIGKILL")
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.exit_code, again.signal_name) == ("text", -9, "SIGKILL")
    raised = pickle.loads(pickle.dumps(ProcessRaisedException("text", 1, 2)))
    assert (str(raised), raised.error_index, raised.error_pid) == ("text", 1, 2)


def test_a_function_that_no_other_process_can_import_is_refused():
    def local(rank: int) -> None:
        pass

    for function, args in ((local, ()), (lambda rank: None, ()), (_rank_program, (Lock(),))):
        for join in (True, False):
            with pytest.raises(pickle.PicklingError, match="Define fn at the top level of a mod"):
                spawn(function, args, nprocs=2, join=join)


def test_a_rank_cannot_spawn_ranks(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(COORDINATOR_PID, "1")
    with pytest.raises(RuntimeError, match="a rank of a run already"):
        spawn(_rank_program, nprocs=2)


def test_impossible_numbers_and_methods_are_refused():
    with pytest.raises(ValueError, match="nprocs is at least 1, got 0"):
        spawn(_rank_program, nprocs=0)
    with pytest.raises(ValueError, match="start_method is 'spawn', got 'fork'"):
        spawn(_rank_program, start_method="fork")
    with pytest.raises(UsageError, match="procs is 3"):
        spawn(_rank_program, nprocs=2, procs=3)
    with pytest.raises(ConfigError, match=r"system\.sips\.count"):
        spawn(_rank_program, nprocs=1025)
