"""The reports of an LP while it runs: to the coordinator, or to a caller in its process."""

import sys
from typing import TYPE_CHECKING

from runtime.core.wallclock import cpu_s
from runtime.wire.control import (
    MemoryContents,
    Printed,
    RecordChunk,
    Status,
    TraceChunk,
    Transferred,
    Written,
)
from runtime.wire.fields import CHUNK_BYTES
from runtime.wire.reports import DevicePrint, SlotTransfer
from sip_node.control import Control
from sip_node.pdes.loop import LogicalProcess

if TYPE_CHECKING:
    from sip_node.node import LpNode


class Reporter:
    """Sends everything to the coordinator."""

    def __init__(self, control: Control, lp: int) -> None:
        self._control, self._lp = control, lp

    def round(self, time_ps: int, loop: LogicalProcess, programs: "LpNode") -> None:
        """Send a status if one is due, and take an abort of the coordinator."""
        # Four times a second at most: a round may take microseconds.
        if self._control.status_is_due():
            began_s = cpu_s()
            statistics = loop.statistics
            status = Status(
                lp=self._lp,
                time_ps=time_ps,
                events=statistics.events,
                blocked_s=statistics.blocked_s,
                next_ps=loop.next_ps,
                safe_ps=loop.safe_ps,
                waits_for=loop.waits_for,
                ranks=programs.activities(),
                oldest_wait=programs.oldest_wait(),
            )
            self._control.report_status(status, cpu_s() - began_s)
        self._control.check()

    def trace(self, sip: int, records: bytes) -> None:
        """Send the records."""
        self._control.send(TraceChunk(self._lp, sip, records))

    def recorded(self, sip: int, table: str, rows: bytes, texts: tuple[str, ...]) -> None:
        """Send the rows and the texts."""
        self._control.send(RecordChunk(self._lp, sip, table, rows, texts))

    def written(self, sip: int, data: bytes) -> None:
        """Send the bytes, in pieces of bounded size."""
        # One message has a bounded size, and a host may write gigabytes.
        for start in range(0, len(data), CHUNK_BYTES):
            self._control.send(Written(self._lp, sip, data[start : start + CHUNK_BYTES]))

    def contents(self, sip: int, address: int, data: bytes) -> None:
        """Send the bytes, in pieces of bounded size."""
        for start in range(0, len(data), CHUNK_BYTES):
            self._control.send(
                MemoryContents(self._lp, sip, address + start, data[start : start + CHUNK_BYTES])
            )

    def transferred(self, transfer: SlotTransfer) -> None:
        """Print the line, and send it for the files of the run."""
        print_transfer(transfer)
        self._control.send(Transferred(self._lp, transfer))

    def printed(self, line: DevicePrint) -> None:
        """Send the line."""
        self._control.send(Printed(self._lp, line))


def print_transfer(transfer: SlotTransfer) -> None:
    """Print a line to the standard error, with the SIP first: several LPs share a terminal."""
    sys.stderr.write(f"[sip {transfer.sip}] {transfer}\n")
