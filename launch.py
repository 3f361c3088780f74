"""`python launch.py --sips N`: the command `kernbench` from a source checkout."""

import sys

try:
    from kernbench.cli.main import main
except ModuleNotFoundError as error:
    sys.exit(
        f"kernbench: error: package {error.name!r} is missing; "
        "run `make setup`, then .venv/bin/python launch.py"
    )

if __name__ == "__main__":
    sys.exit(main())
