"""The messages that the LPs of a run have sent."""

from dataclasses import dataclass, field

from coordinator.watch.op_logs import OpLogs
from coordinator.watch.record_store import RecordStore
from runtime.core.errors import ProtocolError
from runtime.wire.control import (
    Done,
    FromLp,
    MemoryContents,
    Printed,
    RecordChunk,
    Status,
    TraceChunk,
    Transferred,
    Written,
)
from runtime.wire.reports import DevicePrint, SlotTransfer


@dataclass
class Collected:
    """Everything the LPs have sent so far; also used when the run fails.

    `reached_ps` is the last reported time of each LP, `written` by SIP the data of its host's
    writes. `contents` are pieces of memories by physical address.
    `transfers` are the slots that kernels sent and received, and `prints` the lines that they
    printed, of each SIP in the order of time. `records` are the tables of all SIPs.
    """

    done: dict[int, Done] = field(default_factory=dict[int, Done])
    logs: OpLogs = field(default_factory=OpLogs)
    reached_ps: dict[int, int] = field(default_factory=dict[int, int])
    written: dict[int, bytearray] = field(default_factory=dict[int, bytearray])
    contents: list[tuple[int, bytes]] = field(default_factory=list[tuple[int, bytes]])
    transfers: list[SlotTransfer] = field(default_factory=list[SlotTransfer])
    prints: list[DevicePrint] = field(default_factory=list[DevicePrint])
    records: RecordStore = field(default_factory=RecordStore)

    @property
    def time_ps(self) -> int:
        """The latest simulated time that an LP has reported."""
        return max(self.reached_ps.values(), default=0)

    def add(self, lp: int, sips: tuple[int, ...], message: FromLp) -> None:
        """Add a message of LP `lp`, which holds `sips`.

        Raises `ProtocolError` for a message about other SIPs, or one that no LP sends during a run.
        """
        peer = f"LP {lp}"
        match message:
            case Status():
                self.reached_ps[lp] = message.time_ps
            case TraceChunk():
                _require_own(peer, sips, message.sip)
                self.logs.add(message.sip, message.records, peer)
            case RecordChunk():
                _require_own(peer, sips, message.sip)
                self.records.add(message.sip, message.table, message.rows, message.texts, peer)
            case Written():
                _require_own(peer, sips, message.sip)
                self.written.setdefault(message.sip, bytearray()).extend(message.data)
            case MemoryContents():
                _require_own(peer, sips, message.sip)
                self.contents.append((message.address, message.data))
            case Transferred():
                _require_own(peer, sips, message.transfer.sip)
                self.transfers.append(message.transfer)
            case Printed():
                _require_own(peer, sips, message.line.sip)
                self.prints.append(message.line)
            case Done():
                reported = tuple(report.sip for report in message.sips)
                if reported != sips:
                    raise _of_other_sips(peer, sips, reported)
                self.done[lp] = message
                self.reached_ps[lp] = max(report.time_ps for report in message.sips)
            case _:
                raise ProtocolError(peer, f"{type(message).__name__} during a run")


def _require_own(peer: str, sips: tuple[int, ...], sip: int) -> None:
    if sip not in sips:
        raise _of_other_sips(peer, sips, (sip,))


def _of_other_sips(peer: str, sips: tuple[int, ...], reported: tuple[int, ...]) -> ProtocolError:
    return ProtocolError(peer, f"it reports SIPs {reported}, it holds {sips}")
