"""The entry of an LP process: `python -m sip_node --connect ENDPOINT --lp K`.

The coordinator starts it, or a user does by hand to join a run. The id of the run is no argument:
every user can read the arguments of a process. It is read from the standard input, or from a file
that the process has inherited.
"""

import argparse
import faulthandler
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

if __name__ == "__main__" and not sys.flags.safe_path:
    # `python -m` puts the working directory first on the path, where a `runtime.py` of the user
    # would hide the package. The folder that contains the packages of kernbench replaces it.
    sys.path[0] = str(Path(__file__).resolve().parents[1])

# After the path has been set: this imports `runtime`.
from runtime.core.imported_code import ImportRecorder, expected_code
from runtime.wire.run_id import STDIN, read_run_id


def enter(
    endpoint: str,
    run_id: str,
    lp: int,
    function: Callable[..., object] | None = None,
    args: tuple[object, ...] = (),
) -> int:
    """Be LP `lp` of a run until it ends; returns the exit code of the process."""
    # Before the other imports: what is imported later is hashed in the moment of its import.
    recorder = ImportRecorder(expected_code())
    from runtime.core.output import write_whole_lines
    from sip_node import lifeline

    write_whole_lines()

    # Ctrl-C in a terminal reaches the whole process group; only the coordinator acts on it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    # The coordinator sends this signal when the LP hangs. The handler prints the stack even while
    # the interpreter is busy in one bytecode or in a C call.
    if sys.stderr is not None:
        faulthandler.register(signal.SIGUSR1, all_threads=False)
    lifeline.follow_parent()
    # An LP is one thread on one core. The threads of OpenBLAS, the library behind numpy's products,
    # wait for work in a loop and take their time from other LPs; it reads this when it is loaded.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # The chip model is loaded after the lifeline is up, since the import takes part of a second.
    from sip_node import lp_process

    return lp_process.main(endpoint, run_id, lp, recorder, function, args)


def main() -> int:
    """Read the command line and enter the run."""
    parser = argparse.ArgumentParser(
        prog="python -m sip_node", description="One LP of a run.", allow_abbrev=False
    )
    parser.add_argument(
        "--connect", required=True, metavar="ENDPOINT", help="control endpoint of the coordinator"
    )
    parser.add_argument(
        "--run-id-fd",
        type=int,
        default=STDIN,
        metavar="N",
        help="number of an open file with the id of the run, by default the standard input: "
        "a stranger is refused",
    )
    parser.add_argument(
        "--lp", required=True, type=int, metavar="K", help="which LP of the run this is, from 0"
    )
    options = parser.parse_args()
    try:
        run_id = read_run_id(options.run_id_fd)
    except OSError as error:
        parser.error(f"--run-id-fd {options.run_id_fd}: {error.strerror}")
    if not run_id:
        parser.error(f"no id of a run in file {options.run_id_fd} (--run-id-fd)")
    return enter(options.connect, run_id, options.lp)


if __name__ == "__main__":
    sys.exit(main())
