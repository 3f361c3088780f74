"""The tables of one SIP in memory, as rows with names and texts."""

from collections import defaultdict
from typing import Any

import numpy as np

from runtime.core.run_tables import Form, RunTable
from sip_node.chip.records.run_recorder import RunRecorder


class Recorded:
    """Chunks that `recorder` has passed on."""

    def __init__(self) -> None:
        self.recorder = RunRecorder(self._take)
        self._packed: dict[str, bytes] = defaultdict(bytes)
        self._texts: list[str] = []

    def rows(self, table: RunTable) -> list[dict[str, Any]]:
        """The rows of a table by the names of its columns."""
        self.recorder.flush()
        names = [column.name for column in table.columns]
        row = np.dtype([(column.name, str(column.packed)) for column in table.columns])
        found = [
            dict(zip(names, each.tolist(), strict=True))
            for each in np.frombuffer(self._packed[table.name], row)
        ]
        for column in table.columns:
            if column.form is Form.TEXT:
                for each in found:
                    each[column.name] = self._texts[each[column.name]]
        return found

    def _take(self, table: str, rows: bytes, texts: tuple[str, ...]) -> None:
        self._packed[table] += rows
        self._texts += texts
