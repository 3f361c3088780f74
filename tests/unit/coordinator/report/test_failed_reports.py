"""Failed reports, in contrast to errors of the run."""

import pytest

from coordinator.report.failed_reports import FailedReports
from runtime.core.errors import InvariantError, KernbenchError, ProtocolError
from runtime.core.output import OutputError


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ValueError("bad value\nat the second line"), "ValueError: bad value"),
        (KeyError(), "KeyError"),
        (InvariantError("critical path", "a gap"), str(InvariantError("critical path", "a gap"))),
    ],
)
def test_a_report_that_fails_is_a_warning_of_one_line(error: Exception, reason: str) -> None:
    failed = FailedReports()
    with failed.attempt("trace"):
        raise error
    assert failed.take() == [f"no trace: {reason}; the result of the run is not affected"]
    assert failed.take() == []


@pytest.mark.parametrize(
    "error",
    [
        OutputError(("trace.json", "No space left on device")),
        ProtocolError("LP 0", "text 9"),
        BrokenPipeError(),
    ],
)
def test_what_cannot_be_written_or_read_is_an_error_of_the_run(
    error: KernbenchError | OSError,
) -> None:
    failed = FailedReports()
    with pytest.raises(type(error)), failed.attempt("trace"):
        raise error
    assert failed.warnings == []
