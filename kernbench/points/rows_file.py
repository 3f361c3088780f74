"""The rows of a study as JSON lines, each written when it comes: what was computed is never lost.

A line has the name of a point, three hashes (of the point, of the configuration, of the code that
has measured it), and its row or the reason why it has none. Numbers are written exactly, so a row
that is read is the row that was written. At the end the lines are in the order of the points.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Generic, Self, TypeVar

import msgspec
from msgspec import Struct

from coordinator.report.run_lock import RunLock
from kernbench.points.code import own_code
from kernbench.points.task import Point, PointFault
from runtime.core.errors import UsageError
from runtime.core.sha256 import sha256_hex

P = TypeVar("P", bound=Point)
R = TypeVar("R")
SUFFIX = ".rows.jsonl"


class _StoredRow(Struct, forbid_unknown_fields=True, omit_defaults=True):
    point: str
    hash: str
    configuration: str
    code: str
    row: msgspec.Raw = msgspec.Raw(b"null")
    fault: str = ""


def point_hash(point: Point) -> str:
    """SHA-256 of all fields of a point, as hex."""
    return sha256_hex(msgspec.json.encode(point, order="deterministic"))


class RowsFile(Generic[P, R]):
    """The file `path` of the rows of `points`; one process at a time has it open.

    Rows are `row_type`. `configuration` is the hash of the configuration files. Opening it raises
    `UsageError` if another process has it open or if it cannot be written, and with `resume` if it
    has rows of other points, of another configuration or of other code. Without `resume` it goes on
    with a file that has not all points yet, and puts a file of other rows aside; `resume=False`
    starts over in any case.
    """

    def __init__(
        self,
        path: Path,
        row_type: type[R],
        points: Sequence[P],
        configuration: str,
        *,
        resume: bool | None = None,
    ) -> None:
        self.path = path
        self._row_type = row_type
        self._configuration = configuration
        self._points = {point_hash(point): point for point in points}
        self._hashes = {point: key for key, point in self._points.items()}
        self._lines: dict[str, bytes] = {}
        self.note = ""
        """A line for the user about the file that was there, empty where none is needed."""
        self._lock = _locked(path)
        try:
            self.rows: Mapping[P, R] = self._kept(resume)
            """Rows of the file, without faults: these points are not measured again."""
            self.finish()
            self._file = path.open("ab", buffering=0)
        except BaseException:
            self._lock.release()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._lock.release()

    def add(self, point: P, result: R | PointFault) -> None:
        """Append the row of a point, or its fault."""
        key = self._hashes[point]
        content = _StoredRow(str(point), key, self._configuration, own_code())
        if isinstance(result, PointFault):
            content.fault = result.reason
        else:
            content.row = msgspec.Raw(msgspec.json.encode(result))
        self._lines[key] = line = msgspec.json.encode(content) + b"\n"
        try:
            self._file.write(line)
        except OSError as error:
            raise UsageError(f"{self.path} cannot be written: {error.strerror}") from error

    def finish(self) -> None:
        """Put the lines in the order of the points."""
        lines = (self._lines[key] for key in self._points if key in self._lines)
        # Renamed: a process that is killed here leaves the file as it was.
        fresh = self.path.with_name(f"{self.path.name}.new")
        try:
            fresh.write_bytes(b"".join(lines))
            fresh.replace(self.path)
        except OSError as error:
            raise UsageError(f"{self.path} cannot be written: {error.strerror}") from error

    def _kept(self, resume: bool | None) -> dict[P, R]:  # noqa: FBT001 - as `--resume`
        """The rows of the file that count."""
        if resume is False or not self.path.exists():
            return {}
        content = self._content()
        try:
            # What follows the last end of a line is of a process that was killed while it wrote.
            lines = [
                (self._decoded(number, text), text)
                for number, text in enumerate(content.split(b"\n")[:-1], start=1)
            ]
        except UsageError as error:
            if resume:
                raise UsageError(f"--resume: {error}; --no-resume measures all points") from error
            # Of another version or of other options: they may have taken hours.
            aside = self.path.with_name(f"{self.path.name}.old")
            self.path.replace(aside)
            self.note = f"{error}: they are in {aside.name} now"
            return {}
        if resume is None and {line.hash for line, _ in lines} >= self._points.keys():
            return {}
        rows = dict[P, R]()
        for line, text in lines:
            row = self._row(line)
            if row is not None:
                self._lines[line.hash] = text + b"\n"
                rows[self._points[line.hash]] = row
        if rows:
            self.note = f"{len(rows)} of {len(self._points)} rows are in {self.path} already"
        return rows

    def _content(self) -> bytes:
        try:
            return self.path.read_bytes()
        except OSError as error:
            raise UsageError(f"{self.path} cannot be read: {error.strerror}") from error

    def _decoded(self, number: int, text: bytes) -> _StoredRow:
        try:
            line = msgspec.json.decode(text, type=_StoredRow)
        except msgspec.DecodeError as error:
            raise UsageError(f"line {number} of {self.path} is damaged: {error}") from error
        what = f"{self.path} has a row ({line.point})"
        if line.code != own_code():
            raise UsageError(
                f"{what} of other code of kernbench, of hash {line.code[:12]} and not "
                f"{own_code()[:12]}"
            )
        if line.configuration != self._configuration:
            raise UsageError(
                f"{what} of another configuration, of hash {line.configuration[:12]} and not "
                f"{self._configuration[:12]}"
            )
        if line.hash not in self._points:
            raise UsageError(f"{what} that is none of these points")
        return line

    def _row(self, line: _StoredRow) -> R | None:
        if line.fault:
            return None
        try:
            return msgspec.json.decode(line.row, type=self._row_type)
        except msgspec.ValidationError:
            # It has a number that JSON does not have, such as NaN.
            return None


def _locked(path: Path) -> RunLock:
    try:
        return RunLock(path.parent, f".{path.name}.lock")
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from error
