"""The reports of an LP while it runs: to the coordinator, or to a caller in its process."""

import sys
from typing import TYPE_CHECKING, Protocol

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


class LpObserver(Protocol):
    """Receives the progress of an LP and what it records."""

    def round(self, time_ps: int, loop: LogicalProcess, programs: "LpNode") -> None:
        """Called once a round of the loop; an error that it raises ends the run."""
        ...

    def trace(self, sip: int, records: bytes) -> None:
        """The next records of the op log of a SIP, as `codec.decode_records` reads them."""
        ...

    def recorded(self, sip: int, table: str, rows: bytes, texts: tuple[str, ...]) -> None:
        """The next rows of a table of a SIP, and its next texts, in a run with records."""
        ...

    def written(self, sip: int, data: bytes) -> None:
        """The next bytes which the host of a SIP wrote, in a run that will be verified."""
        ...

    def contents(self, sip: int, address: int, data: bytes) -> None:
        """Bytes of a memory at the end of a run that will be verified."""
        ...

    def transferred(self, transfer: SlotTransfer) -> None:
        """A kernel has sent or received a slot, in a run with `ccl_trace`."""
        ...

    def printed(self, line: DevicePrint) -> None:
        """A kernel has printed a line."""
        ...


class Reporter:
    """Sends everything to the coordinator."""

    def __init__(self, control: Control, lp: int) -> None:
        self._control, self._lp = control, lp

    def round(self, time_ps: int, loop: LogicalProcess, programs: "LpNode") -> None:
        """Send a status if one is due, and take an abort of the coordinator."""
        # Four times a second at most: a round may take microseconds.
        if self._control.status_is_due():
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
            self._control.report_status(status)
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
