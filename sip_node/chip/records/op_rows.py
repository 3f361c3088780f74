"""The rows of operations for the records of a run: what each waited for, and how long.

An operation waits in the queue of its engine from its request to its start, and its packets queue
on links and at memories. The longest of these waits is its cause.
"""

from runtime.core.run_tables import NONE, OPS, Cause
from runtime.core.trace import Operand, OpRecord
from sip_node.chip.records.packet_train import QueueTimes
from sip_node.chip.records.run_recorder import RunRecorder

ROWS = 256
"""Rows that are packed before they are passed on."""


class OpRows:
    """Packs the rows of one SIP for `recorder`."""

    def __init__(self, recorder: RunRecorder) -> None:
        self._recorder, self._pack = recorder, OPS.packer.pack
        self._rows: list[bytes] = []

    def add(
        self, record: OpRecord, requested_ps: int, cause: str, times: QueueTimes | None, step: int
    ) -> None:
        """Add the row of a record, requested at `requested_ps` by a step of a program.

        `cause` is what it has waited for since. `times` are what its packets have queued.
        """
        text = self._recorder.text
        blocks = (each.address for each in record.inputs if isinstance(each, Operand))
        engine, name = text(record.engine), text(record.name)
        link, link_ps, memory_ps = "", 0, 0
        if times is not None:
            link_ps, memory_ps = times.link_ps, times.memory_ps
            link = times.link if link_ps else ""
        waits = (
            (record.start_ps - requested_ps if cause else 0, cause),
            (link_ps, Cause.LINK),
            (memory_ps, Cause.MEMORY),
        )
        # Of equal waits the first.
        longest_ps, longest = max(waits, key=lambda wait: wait[0])
        self._rows.append(
            self._pack(
                engine,
                name,
                record.cube,
                record.pe,
                record.start_ps,
                record.end_ps,
                record.address,
                next(blocks, 0),
                record.nbytes,
                *(record.flow or (NONE, NONE, NONE)),
                record.flow_end,
                requested_ps,
                text(str(longest) if longest_ps > 0 else Cause.NONE),
                link_ps,
                text(link),
                memory_ps,
                step,
            )
        )
        if len(self._rows) == ROWS:
            self.flush()

    def flush(self) -> None:
        """Give the rows to the recorder."""
        if self._rows:
            self._recorder.add(OPS, b"".join(self._rows))
            self._rows = []
