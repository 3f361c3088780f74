"""The text of the source lines that records name, as far as the file is still that of the run."""

from functools import cache
from pathlib import Path

from kernbench.explain.records import RecordedRun
from runtime.core.code.imported_code import CodeFile
from runtime.core.compiled.library import ROOT
from runtime.core.sha256 import sha256_hex

_MOST_BYTES = 1 << 22


class SourceText:
    """The lines of the files of a run: those of the user, whose hash the run has recorded, and of
    kernbench itself.
    """

    def __init__(self, records: RecordedRun) -> None:
        self._code = tuple(records.run.user_code.values())

    def of(self, line: str) -> str:
        """The text of a line `file:number` without its indentation; empty if it is not there."""
        return self.indented(line).strip()

    def indented(self, line: str) -> str:
        """The same with its indentation."""
        file, colon, number = line.rpartition(":")
        if not colon or not number.isdecimal():
            return ""
        lines = self._lines(file)
        return lines[int(number) - 1].rstrip() if 0 < int(number) <= len(lines) else ""

    def _lines(self, file: str) -> tuple[str, ...]:
        for code in self._code:
            if code.file == file or code.file.endswith(f"/{file}"):
                return _user_lines(code)
        return _own_lines(file)


@cache
def _user_lines(code: CodeFile) -> tuple[str, ...]:
    content = _content(Path(code.file))
    # A file that has changed since would show another statement.
    if content is None or sha256_hex(content) != code.sha256:
        return ()
    return tuple(content.decode(errors="replace").splitlines())


@cache
def _own_lines(file: str) -> tuple[str, ...]:
    path = ROOT / file
    if ".." in Path(file).parts or Path(file).is_absolute() or path.suffix != ".py":
        return ()
    content = _content(path)
    return () if content is None else tuple(content.decode(errors="replace").splitlines())


def _content(path: Path) -> bytes | None:
    try:
        if not path.is_file() or path.stat().st_size > _MOST_BYTES:
            return None
        return path.read_bytes()
    except OSError:
        return None
