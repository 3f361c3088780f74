"""The summary of a failed script has the form of torchrun's."""

import pytest

from coordinator.failure import Interrupted, LpDied, LpExitFailed, LpProcess, RankFailed
from coordinator.report.root_cause import root_cause
from runtime.core.errors import KernbenchError
from runtime.wire.control import Failed

PROCESS = LpProcess(1, (1,), 4711)


def test_a_rank_that_raised_is_the_root_cause_with_simulated_time_and_its_error():
    failed = Failed(1, 1, "ValueError", "no\nluck", "Traceback", 5_000)
    assert list(root_cause("train.py", RankFailed(PROCESS, failed))) == [
        "=" * 60,
        "train.py FAILED",
        "-" * 60,
        "Failures:",
        "  <NO_OTHER_FAILURES>",
        "-" * 60,
        "Root Cause (first observed failure):",
        "[0]:",
        "  time      : 5.000 ns (simulated)",
        "  rank      : 1 (local_rank: 1)",
        "  exitcode  : 1 (pid: 4711)",
        "  error     : ValueError: no",
        "  traceback : printed above",
        "=" * 60,
    ]


@pytest.mark.parametrize(
    ("error", "lines"),
    [
        (
            RankFailed(PROCESS, Failed(1, 1, "ProgramExited", "", "", 0, exit_code=3)),
            ["  exitcode  : 3 (pid: 4711)", "  traceback : <N/A>"],
        ),
        (
            LpDied(PROCESS, -9, 0),
            [
                "  exitcode  : -9 (pid: 4711)",
                "  traceback : Signal 9 (SIGKILL) received by PID 4711",
            ],
        ),
        (
            LpExitFailed(PROCESS, 7, 0),
            ["  exitcode  : 7 (pid: 4711)", "  traceback : <N/A>"],
        ),
    ],
)
def test_the_exit_code_is_that_of_the_rank(error: KernbenchError, lines: list[str]):
    assert list(root_cause("train.py", error))[-3:-1] == lines


@pytest.mark.parametrize(
    "error", [Interrupted(2, 0), RankFailed(PROCESS, Failed(1, -1, "E", "", "", 0))]
)
def test_an_error_that_is_no_failure_of_a_rank_has_no_summary(error: KernbenchError):
    assert not list(root_cause("train.py", error))
