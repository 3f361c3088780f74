"""`python -m kernbench`: the command `kernbench`."""

import sys
from pathlib import Path

if __name__ == "__main__" and not sys.flags.safe_path:
    # `python -m` puts the working directory first on the path, whose modules would hide those of
    # Python and of libraries: it may be a directory of another user's runs. The folder that
    # contains the packages of kernbench replaces it.
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from kernbench.cli.main import main
from runtime.core.code.imported_code import ImportRecorder, expected_code

if __name__ == "__main__":
    if (expected := expected_code()) is not None:
        # The command imports the module of a bench, as its ranks do.
        ImportRecorder(expected)
    sys.exit(main())
