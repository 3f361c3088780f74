"""The text of the operations of a run in C, as Python sees it."""

from collections.abc import Iterator, Sequence

from coordinator.op_logs import OpLogs
from coordinator.report.log_text import Lane

class LogText:
    lanes: list[Lane]
    def __init__(self, logs: OpLogs) -> None: ...
    def pieces(self, tid_of_lane: Sequence[int]) -> Iterator[tuple[bytes, bytes]]: ...
