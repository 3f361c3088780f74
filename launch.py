"""`python launch.py --sips N`: the command `kernbench` from a source checkout."""

import signal
import sys

if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    # Ctrl-C during the imports ends the process without a traceback; then the command handles it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)

try:
    from kernbench.cli.main import main
except ModuleNotFoundError as error:
    sys.exit(
        f"kernbench: error: package {error.name!r} is missing; "
        "run `make setup`, then .venv/bin/python launch.py"
    )

if __name__ == "__main__":
    sys.exit(main())
