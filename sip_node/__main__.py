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
from typing import TYPE_CHECKING

if __name__ == "__main__" and not sys.flags.safe_path:
    # `python -m` puts the working directory first on the path, where a `runtime.py` of the user
    # would hide the package. The folder that contains the packages of kernbench replaces it.
    sys.path[0] = str(Path(__file__).resolve().parents[1])

# After the path has been set: this imports `runtime`.
from runtime.core.code.imported_code import ImportRecorder, expected_code
from runtime.wire.run_id import STDIN, read_run_id

if TYPE_CHECKING:
    from sip_node.lifeline import Ending
    from sip_node.site import Site


def enter(
    endpoint: str,
    run_id: str,
    lp: int,
    function: Callable[..., object] | None = None,
    args: tuple[object, ...] = (),
    site: "Site | None" = None,
) -> int:
    """Be LP `lp` of a run until it ends; returns the exit code of the process.

    `site` is the host of a process that a launcher has started; then `lp` is its rank there.
    """
    # Before the other imports: what is imported later is hashed in the moment of its import.
    recorder = ImportRecorder(expected_code())
    from runtime.core.output import write_whole_lines
    from runtime.wire.environment import run_directory
    from sip_node import lifeline
    from sip_node.lifeline import Ending

    write_whole_lines()

    # Ctrl-C in a terminal reaches the whole process group; only the coordinator acts on it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    ending = Ending(run_directory()) if site is None else Ending(None, f"rank {lp} on {site.name}")
    if site is not None and site.lock >= 0:
        ending.shared = site.join()
    _end_by_sigterm(None if site is None else ending)
    # The coordinator sends this signal when the LP hangs. The handler prints the stack even while
    # the interpreter is busy in one bytecode or in a C call.
    if sys.stderr is not None:
        faulthandler.register(signal.SIGUSR1, all_threads=False)
    lifeline.follow_parent(ending)
    # An LP is one thread on one core. The threads of OpenBLAS, the library behind numpy's products,
    # wait for work in a loop and take their time from other LPs; it reads this when it is loaded.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # The chip model is loaded after the lifeline is up, since the import takes part of a second.
    from sip_node import lp_process

    joining = lp_process.Joining(endpoint, run_id, lp, ending, site)
    return lp_process.main(joining, recorder, function, args)


def _end_by_sigterm(ending: "Ending | None") -> None:
    """Let SIGTERM end this process; it prints a line by `ending` where that is given."""
    if ending is None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        return

    def end(signum: int, _: object) -> None:
        ending.at_once("it is stopped by SIGTERM", 128 + signum)

    signal.signal(signal.SIGTERM, end)


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
    of_launchers = parser.add_argument_group("a process that `kernbench node` has become")
    of_launchers.add_argument(
        "--host-directory", metavar="DIR", help="the directory of the processes of this host"
    )
    of_launchers.add_argument(
        "--lock-fd", type=int, default=-1, metavar="N", help="number of an open file with its lock"
    )
    of_launchers.add_argument(
        "--listen", default="", metavar="ADDRESS", help="where LPs of other hosts reach this one"
    )
    of_launchers.add_argument(
        "--command-hash", default="", metavar="HASH", help="of the command line of all processes"
    )
    options = parser.parse_args()
    try:
        run_id = read_run_id(options.run_id_fd)
    except OSError as error:
        parser.error(f"--run-id-fd {options.run_id_fd}: {error.strerror}")
    if not run_id:
        parser.error(f"no id of a run in file {options.run_id_fd} (--run-id-fd)")
    return enter(options.connect, run_id, options.lp, site=_site(options))


def _site(options: argparse.Namespace) -> "Site | None":
    if options.host_directory is None:
        return None
    from sip_node.site import Site

    directory = Path(options.host_directory)
    return Site(directory, options.listen, options.command_hash, options.lock_fd)


if __name__ == "__main__":
    sys.exit(main())
