"""Frames of strangers at the sockets of LPs of any program: refused, named once, same digest."""

import time
from collections.abc import Callable
from pathlib import Path
from random import Random

from runtime.wire.passwords import Passwords
from tests.chaos.disturbed_run import POLL_S, DisturbedRun, digest_of
from tests.chaos.outcome import Outcome
from tests.chaos.programs import CONNECTED, Program, Undisturbed
from tests.support.foreign_frames import FRAMES, send_as_a_stranger
from tests.support.runs import without_progress

KINDS = tuple(FRAMES)
_LIMIT_S = 120.0
_WARNING = "kernbench: warning: LP {lp} refused "


def send_foreign_frames(
    seed: int, number: int, folder: Path, undisturbed: Callable[[Program], Undisturbed]
) -> Outcome:
    """Run a program, and send frames of kind `number` to each of its LPs as soon as it listens."""
    kind, program = (
        KINDS[number % len(KINDS)],
        Random(f"{seed} frames {number}").choice(CONNECTED),
    )
    outcome = Outcome(f"foreign frames: {kind}", f"{kind}: {program}")
    expected = undisturbed(program)
    with DisturbedRun(program.words, folder) as run:
        for lp in range(program.lps):
            socket = _socket(run, lp)
            if socket is None:
                outcome.problems.append(f"LP {lp} does not listen")
                break
            for password in (b"", Passwords("another run").of(1, lp)):
                send_as_a_stranger(f"ipc://{socket}", password, FRAMES[kind])
        outcome.require(run.wait(_LIMIT_S), run.states())
        left = run.left()
    outcome.output = f"{run.stdout[-1500:]}\n{run.stderr[-3000:]}"
    outcome.require(run.process.returncode == 0, f"exit code {run.process.returncode}")
    outcome.require(digest_of(run.stdout) == expected.digest, "another digest")
    outcome.require(not left, f"left: {left}")
    for lp in range(program.lps):
        named = run.stderr.count(_WARNING.format(lp=lp))
        outcome.require(named == 1, f"LP {lp} names them {named} times")
    errors = without_progress(run.stderr).splitlines()
    lines = [line for line in errors if ": note: " not in line]
    outcome.require(len(lines) == program.lps, f"{len(lines)} lines for {program.lps} LPs")
    return outcome


def _socket(run: DisturbedRun, lp: int) -> Path | None:
    """The socket of `lp`, as soon as it is there."""
    until_s = time.monotonic() + _LIMIT_S
    while not (found := list(run.temp.glob(f"*/lp{lp}"))):
        if run.process.poll() is not None or time.monotonic() > until_s:
            return None
        time.sleep(POLL_S)
    return found[0]
