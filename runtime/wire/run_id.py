"""Hands the id of a run to the process of an LP by a pipe that it inherits.

The id admits a process to the run. Every user can read the command line of a process, and programs
print their environment, so it is in neither.
"""

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager

STDIN = 0
_LONGEST_ID_BYTES = 256


@contextmanager
def run_id_pipe(run_id: str) -> Generator[int]:
    """The file number of a pipe from which a child can read the id; closed here afterwards."""
    reading, writing = os.pipe()
    try:
        # A pipe holds at least 4096 bytes, so this does not wait for a reader.
        os.write(writing, f"{run_id}\n".encode())
        os.close(writing)
        yield reading
    finally:
        os.close(reading)


def read_run_id(file: int) -> str:
    """The id: one line of an open file. A terminal shows a prompt and does not show the id.

    A file other than the standard input is closed. Raises `OSError` for a file that is not open.
    """
    if os.isatty(file):
        # Imported here: only a person needs it.
        from getpass import getpass

        return getpass("id of the run: ", sys.stderr).strip()
    line = bytearray()
    # By single bytes: what follows the line is the input of the program.
    while len(line) < _LONGEST_ID_BYTES and (byte := os.read(file, 1)) not in (b"", b"\n"):
        line += byte
    if file != STDIN:
        os.close(file)
    return line.decode("ascii", "replace").strip()
