"""Reports of a run that could not be made: they never turn a good run into a failed one."""

from collections.abc import Generator
from contextlib import contextmanager

from runtime.core.errors import KernbenchError, ProtocolError
from runtime.core.output import OutputError


class FailedReports:
    """The warnings for the reports of one run, each of which is made within `attempt`.

    A report is what is computed from the data of the run: its explanation, its trace, a table.
    """

    def __init__(self) -> None:
        self.warnings: list[str] = []

    @contextmanager
    def attempt(self, report: str) -> Generator[None]:
        """Catch and store what goes wrong in a report.

        Outputs that cannot be written, and wrong data of an LP, are errors of the run and raised.
        """
        try:
            yield
        except (OutputError, BrokenPipeError, ProtocolError):
            raise
        # The result of the simulation was complete before, for every kind of error.
        except Exception as error:  # noqa: BLE001
            self.warnings.append(
                f"no {report}: {_reason(error)}; the result of the run is not affected"
            )

    def take(self) -> list[str]:
        """The warnings since the last call."""
        taken, self.warnings = self.warnings, []
        return taken


def _reason(error: Exception) -> str:
    text = next(iter(str(error).splitlines()), "")
    if isinstance(error, KernbenchError):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
