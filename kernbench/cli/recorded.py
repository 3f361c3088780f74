"""Opens the directory of a run for `why`, `trace` and `web`."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import MsgspecError

from kernbench.command.exit_codes import print_warning
from runtime.core.errors import UsageError

if TYPE_CHECKING:
    from kernbench.explain.records import RecordedRun


@contextmanager
def consistent(*directories: Path) -> Generator[None]:
    """Raise what values that contradict each other cause in the block as a `UsageError`.

    A checksum shows that a table is as it was written, and not that a run has written it: a table
    may have a step of a program that no table has.
    """
    try:
        yield
    except (LookupError, ValueError, ArithmeticError, MsgspecError) as error:
        names = " or ".join(map(str, directories))
        raise UsageError(
            f"the tables or the op log of {names} contradict each other "
            f"({type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}): no run "
            "of this version has written them; run it again"
        ) from error


def default_output(path: Path) -> Path:
    """An output that the user has not named, in the directory of a run.

    Raises `UsageError` for a symbolic link: in a directory of another user, it may lead to any file
    of the caller.
    """
    if path.is_symlink():
        raise UsageError(f"{path} is a symbolic link: remove it, or name the output with --out")
    return path


def opened(directory: Path) -> "RecordedRun":
    """The records of a run; a warning if another version of kernbench has written them.

    Raises `UsageError` for a directory that is not that of a recorded run.
    """
    # Imported here: a help text needs no arrays.
    from kernbench.explain.records import open_run
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
