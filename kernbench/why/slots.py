"""Joins the sends, arrivals and receives of slots over all SIPs.

An address of a slot is one of the whole machine. A slot is filled again only when it has been
freed, so the send that filled it for a receive is the last one before, and the receive that freed
it for a send is the last one that has ended. The address of an arrival is that of its last packet,
which lies inside of the slot; an arrival starts with its send.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernbench.run_records import Columns

Longs = NDArray[np.int64]


class OpOfSip(NamedTuple):
    """A row of the operations of a SIP."""

    sip: int
    row: int


@dataclass(frozen=True)
class _Sorted:
    """Operations ordered by two keys."""

    first: Longs
    second: Longs
    sips: Longs
    rows: Longs

    @classmethod
    def of(cls, parts: list[tuple[int, Longs, Longs, Longs]]) -> "_Sorted":
        empty = np.zeros(0, np.int64)
        rows = np.concatenate([empty, *(rows for _, rows, _, _ in parts)])
        first = np.concatenate([empty, *(first for _, _, first, _ in parts)])
        second = np.concatenate([empty, *(second for _, _, _, second in parts)])
        sips = np.concatenate([empty, *(np.full(len(rows), sip) for sip, rows, _, _ in parts)])
        order = np.lexsort((second, first))
        return cls(first[order], second[order], sips[order], rows[order])

    def last(self, first: int, second: int) -> OpOfSip | None:
        """The last operation of that first key whose second key is at most `second`."""
        begin = int(np.searchsorted(self.first, first))
        end = int(np.searchsorted(self.first, first, side="right"))
        at = begin + int(np.searchsorted(self.second[begin:end], second, side="right")) - 1
        return OpOfSip(int(self.sips[at]), int(self.rows[at])) if at >= begin else None


class SlotJoins:
    """Finds the operation at the other end of a queue."""

    def __init__(self, ops: Mapping[int, Columns]) -> None:
        self._ops = ops
        sends = [self._rows(sip, "ipcq_send", "address", "start_ps") for sip in ops]
        receives = [self._rows(sip, "ipcq_recv", "read_address", "end_ps") for sip in ops]
        arrivals = [self._rows(sip, "arrival", "start_ps", "address") for sip in ops]
        self._sends = _Sorted.of(sends)
        self._receives = _Sorted.of(receives)
        self._arrivals = _Sorted.of(arrivals)

    def _rows(
        self, sip: int, name: str, first: str, second: str
    ) -> tuple[int, Longs, Longs, Longs]:
        ops = self._ops[sip]
        rows = np.flatnonzero(ops.text("name").equal(name)).astype(np.int64)
        return sip, rows, ops[first][rows], ops[second][rows]

    def send_of_receive(self, receive: OpOfSip) -> OpOfSip | None:
        """The send that filled the slot which `receive` copies."""
        ops = self._ops[receive.sip]
        address, start_ps = ops["read_address"][receive.row], ops["start_ps"][receive.row]
        return self._sends.last(int(address), int(start_ps))

    def send_of_arrival(self, arrival: OpOfSip) -> OpOfSip | None:
        """The send whose slot `arrival` announces."""
        ops = self._ops[arrival.sip]
        address, start_ps = int(ops["address"][arrival.row]), int(ops["start_ps"][arrival.row])
        at = int(np.searchsorted(self._sends.first, address, side="right")) - 1
        if at < 0:
            return None
        send = self._sends.last(int(self._sends.first[at]), start_ps)
        return send if send is not None and self._start_ps(send) == start_ps else None

    def arrival_of_send(self, send: OpOfSip) -> OpOfSip | None:
        """The arrival that announces the slot of `send`."""
        ops = self._ops[send.sip]
        address, nbytes = int(ops["address"][send.row]), int(ops["nbytes"][send.row])
        start_ps = int(ops["start_ps"][send.row])
        arrival = self._arrivals.last(start_ps, address + max(nbytes, 1) - 1)
        if arrival is None or int(self._ops[arrival.sip]["address"][arrival.row]) < address:
            return None
        return arrival

    def receive_that_freed(self, send: OpOfSip) -> OpOfSip | None:
        """The receive that freed the slot of `send` before, None if it was never full."""
        ops = self._ops[send.sip]
        address, requested_ps = ops["address"][send.row], ops["requested_ps"][send.row]
        return self._receives.last(int(address), int(requested_ps))

    def _start_ps(self, op: OpOfSip) -> int:
        return int(self._ops[op.sip]["start_ps"][op.row])
