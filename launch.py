"""`python launch.py --sips N`: kernbench from a source checkout."""

import sys

from coordinator.cli import main

if __name__ == "__main__":
    sys.exit(main())
