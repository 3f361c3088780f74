"""`python -m kernbench`: the command `kernbench`."""

import sys

from kernbench.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
