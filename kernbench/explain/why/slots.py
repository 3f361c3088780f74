"""Joins the sends, arrivals and receives of slots over all SIPs.

An address of a slot is one of the whole machine. A slot is filled again only when it has been
freed, so the send that filled it for a receive is the last one before, and the receive that freed
it for a send is the last one that has ended. The address of an arrival is that of its last packet,
which lies inside of the slot; an arrival starts with its send.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kernbench.explain.records import Columns

Longs = NDArray[np.int64]


class OpOfSip(NamedTuple):
    """A row of the operations of a SIP."""

    sip: int
    row: int


class _Sorted(Struct, frozen=True):
    """Operations ordered by two keys."""

    # Views: a bisection in them is ten times as fast as one of numpy.
    first: memoryview
    second: memoryview
    sips: memoryview
    rows: memoryview

    @classmethod
    def of(cls, parts: list[tuple[int, Longs, Longs, Longs]]) -> "_Sorted":
        empty = np.zeros(0, np.int64)
        rows = np.concatenate([empty, *(rows for _, rows, _, _ in parts)])
        first = np.concatenate([empty, *(first for _, _, first, _ in parts)])
        second = np.concatenate([empty, *(second for _, _, _, second in parts)])
        sips = np.concatenate([empty, *(np.full(len(rows), sip) for sip, rows, _, _ in parts)])
        order = np.lexsort((second, first))
        return cls(*(each[order].data for each in (first, second, sips, rows)))

    def last(self, first: int, second: int) -> OpOfSip | None:
        """The last operation of that first key whose second key is at most `second`."""
        begin = bisect_left(self.first, first)
        end = bisect_right(self.first, first, begin)
        index = bisect_right(self.second, second, begin, end) - 1
        return OpOfSip(self.sips[index], self.rows[index]) if index >= begin else None


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
        address, start_ps = ops["read_address"].item(receive.row), ops["start_ps"].item(receive.row)
        return self._sends.last(address, start_ps)

    def send_of_arrival(self, arrival: OpOfSip) -> OpOfSip | None:
        """The send whose slot `arrival` announces."""
        ops = self._ops[arrival.sip]
        address, start_ps = ops["address"].item(arrival.row), ops["start_ps"].item(arrival.row)
        index = bisect_right(self._sends.first, address) - 1
        if index < 0:
            return None
        send = self._sends.last(self._sends.first[index], start_ps)
        return send if send is not None and self.start_ps(send) == start_ps else None

    def arrival_of_send(self, send: OpOfSip) -> OpOfSip | None:
        """The arrival that announces the slot of `send`."""
        ops = self._ops[send.sip]
        address, nbytes = ops["address"].item(send.row), ops["nbytes"].item(send.row)
        start_ps = ops["start_ps"].item(send.row)
        arrival = self._arrivals.last(start_ps, address + max(nbytes, 1) - 1)
        if arrival is None or self._ops[arrival.sip]["address"].item(arrival.row) < address:
            return None
        return arrival

    def receive_that_freed(self, send: OpOfSip) -> OpOfSip | None:
        """The receive that freed the slot of `send` before, None if it was never full."""
        ops = self._ops[send.sip]
        address, requested_ps = ops["address"].item(send.row), ops["requested_ps"].item(send.row)
        return self._receives.last(address, requested_ps)

    def is_receive(self, op: OpOfSip) -> bool:
        """Whether an operation copies a slot that has arrived."""
        return self._ops[op.sip].text("name")[op.row] == "ipcq_recv"

    def start_ps(self, op: OpOfSip) -> int:
        """The start of an operation."""
        return self._ops[op.sip]["start_ps"].item(op.row)

    def end_ps(self, op: OpOfSip) -> int:
        """The end of an operation."""
        return self._ops[op.sip]["end_ps"].item(op.row)

    def pe_of(self, op: OpOfSip) -> tuple[int, int]:
        """The cube and the PE of an operation."""
        ops = self._ops[op.sip]
        return ops["cube"].item(op.row), ops["pe"].item(op.row)
