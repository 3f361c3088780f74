"""Signals at random moments: a run ends in five seconds with one error, or is not affected."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from coordinator.launch.directory import sweep
from tests.chaos.disturbed_run import DisturbedRun, digest_of, send
from tests.chaos.faults import REQUESTS, TIMEOUT_S, Fault
from tests.chaos.outcome import ERROR, Outcome
from tests.chaos.programs import Program, Undisturbed
from tests.chaos.reading import read_problems

LIMIT_S = 5.0
"""The longest time from the fault, or from the `--timeout` of a stopped process, to the end."""
_UNDISTURBED_S = 120.0


def disturb(fault: Fault, folder: Path, undisturbed: Callable[[Program], Undisturbed]) -> Outcome:
    """Run the program of `fault`, send its signal, and check what becomes of the run."""
    outcome = Outcome(fault.kind.name, str(fault))
    expected = undisturbed(fault.program)
    with DisturbedRun(fault.words, folder) as run:
        _sleep_until(run.began_s + fault.moment * expected.wall_s)
        was_there = run.process.poll() is None
        survives = fault.kind.command and len(run.lps) > abs(fault.kind.lps)
        hit = _send(fault, run)
        ended = run.wait(_limit_s(fault, hit, expected))
        outcome.require(ended, f"{run.states()}")
        left = run.left()
    code, out, errors = run.process.returncode, run.stdout, run.stderr
    outcome.output = f"exit code {code}\n{out[-1500:]}\n{errors[-3000:]}"
    outcome.require_no_traceback(errors)
    if ended:
        by_next_run = code < 0 and not survives
        _require_nothing_left(outcome, run, left, by_next_run=by_next_run)
        if code == 0:
            _require_complete(outcome, run, expected)
        else:
            outcome.require(hit and not _is_harmless(fault), f"exit code {code} without a fault")
            outcome.require(was_there, "the command had ended before")
            _require_explained(outcome, fault, code, run)
    if run.out.exists():
        outcome.problems += read_problems(run.out)
    return outcome


def _send(fault: Fault, run: DisturbedRun) -> bool:
    """Send the signal to its targets; whether one of them was there."""
    hit = False
    for _ in range(3 if fault.kind.again else 1):
        targets = fault.lps(run.lps)
        if fault.kind.command:
            targets.insert(0, run.process.pid)
        sent = [send(pid, fault.signal) for pid in targets if _runs(run, pid)]
        hit |= any(sent)
        if fault.kind.group:
            hit |= _send_to_group(run, fault.signal)
        if fault.kind.again or fault.kind.goes_on:
            time.sleep(fault.pause_s / (3 if fault.kind.again else 1))
        if fault.kind.goes_on:
            for pid in targets:
                send(pid, signal.SIGCONT)
            if fault.kind.group:
                _send_to_group(run, signal.SIGCONT)
    return hit


def _runs(run: DisturbedRun, pid: int) -> bool:
    """Whether a process has not ended; the command is a child, whose id stays until it is read."""
    return pid != run.process.pid or run.process.poll() is None


def _send_to_group(run: DisturbedRun, signum: int) -> bool:
    try:
        os.killpg(run.process.pid, signum)
    except ProcessLookupError:
        return False
    return True


def _is_harmless(fault: Fault) -> bool:
    return fault.kind.harmless or fault.kind.goes_on


def _limit_s(fault: Fault, hit: bool, expected: Undisturbed) -> float:
    if not hit or _is_harmless(fault):
        return _UNDISTURBED_S
    if fault.kind.stops:
        # While one LP starts, the silence of others that start as well has no limit.
        return LIMIT_S + TIMEOUT_S + expected.wall_s
    return LIMIT_S


def _sleep_until(moment_s: float) -> None:
    time.sleep(max(0.0, moment_s - time.monotonic()))


def _require_nothing_left(
    outcome: Outcome, run: DisturbedRun, left: list[str], *, by_next_run: bool
) -> None:
    """No file is left, or it is the private directory, and the next run may remove and removes it.

    That is so where no process of the run has survived the signal that ended the command.
    """
    if left and by_next_run:
        sweep(run.temp)
        outcome.left_to_next_run = True
        left = run.left()
    outcome.require(not left, f"left: {', '.join(left)}")


def _require_complete(outcome: Outcome, run: DisturbedRun, expected: Undisturbed) -> None:
    digest = digest_of(run.stdout)
    outcome.require(digest == expected.digest, f"digest {digest}, not {expected.digest}")
    outcome.require(not ERROR.search(run.stderr), "an error with exit code 0")


def _require_explained(outcome: Outcome, fault: Fault, code: int, run: DisturbedRun) -> None:
    to_command = fault.kind.command or fault.kind.group
    in_session = run.stdout and not digest_of(run.stdout)
    if to_command and not (fault.signal in REQUESTS and in_session):
        # A process that a signal has ended prints nothing; its parent sees the signal. Requests are
        # handled while there are processes and files of the run to care for.
        outcome.require(code in (-fault.signal, 128 + fault.signal), f"exit code {code}")
        return
    name = fault.signal.name
    if to_command:
        outcome.require(code == 128 + fault.signal, f"exit code {code}")
        outcome.require_one_error(code, run.stderr, f"error: stopped by {name} at [0-9,.]+ ns")
    elif fault.kind.stops:
        pattern = r"LP \d+ \(ranks? [\d-]+, pid \d+\) hangs|error: simulated time has stood at"
        outcome.require_one_error(code, run.stderr, pattern)
    else:
        pattern = rf"error: LP \d+ \(ranks? [\d-]+, pid \d+\) was killed by {name} "
        outcome.require_one_error(code, run.stderr, pattern)
