"""What the LPs of a run have sent."""

from dataclasses import dataclass, field

from coordinator.op_logs import OpLogs
from coordinator.record_store import RecordStore
from runtime.wire.control import Done
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
