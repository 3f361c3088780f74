"""Opens the directory of a run for `why`, `trace` and `web`."""

from pathlib import Path
from typing import TYPE_CHECKING

from kernbench.cli.exit_codes import print_warning

if TYPE_CHECKING:
    from kernbench.run_records import RecordedRun


def opened(directory: Path) -> "RecordedRun":
    """The records of a run; a warning if another version of kernbench has written them.

    Raises `UsageError` for a directory that is not that of a recorded run.
    """
    # Imported here: a help text needs no arrays.
    from kernbench.run_records import open_run
    from runtime.wire.fields import PROTOCOL_VERSION

    records = open_run(directory)
    if (protocol := records.run.protocol) != PROTOCOL_VERSION:
        # The tables have the columns of this version, or reading them is an error.
        print_warning(
            f"{directory} was written with protocol {protocol}, this version of kernbench has "
            f"{PROTOCOL_VERSION}: a column may have had another meaning, and a repetition of the "
            "run other times"
        )
    return records
