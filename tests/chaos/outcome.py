"""Outcome of one case, and the check of its text that all series share."""

import re
from dataclasses import dataclass, field

ERROR = re.compile(r"^kernbench: error: ", re.MULTILINE)
_TRACEBACK = re.compile(r"^Traceback \(most recent call last\):$|^Exception ignored", re.MULTILINE)


@dataclass
class Outcome:
    """A case of a series: the row of the table to which it belongs, what it does, what is wrong."""

    kind: str
    case: str
    problems: list[str] = field(default_factory=list)
    skipped: str = ""
    output: str = ""
    left_to_next_run: bool = False
    """No process was left to remove the private directory, and the next run has removed it."""

    def require(self, holds: object, problem: str) -> None:
        """Note `problem` unless `holds`."""
        if not holds:
            self.problems.append(problem)

    def require_one_error(self, code: int, errors: str, pattern: str = "") -> None:
        """One error, which matches `pattern`, and exit code 1 or more."""
        self.require_no_traceback(errors)
        starts = len(ERROR.findall(errors))
        self.require(code > 0, f"exit code {code}")
        self.require(starts == 1, f"{starts} errors in place of one")
        self.require(re.search(pattern, errors), f"the error does not match {pattern!r}")

    def require_no_traceback(self, errors: str) -> None:
        """No exception of kernbench itself is printed."""
        self.require(not _TRACEBACK.search(errors), "a traceback")
