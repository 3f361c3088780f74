"""Joins the two ends of every message: the send of a slot, and its arrival at the receiver.

A slot has one physical address in the whole machine, and its ring is FIFO: the k-th send to an
address and the k-th arrival at it are the same message.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from kernbench.explain.records import Columns
from kernbench.explain.records.columns import Numbers

SEND, ARRIVAL, RECEIVE = "ipcq_send", "arrival", "ipcq_recv"


class Ends(NamedTuple):
    """One end of messages: entry i is the operation in row `rows[i]` of SIP `sips[i]`."""

    sips: Numbers
    rows: Numbers


def messages(ops: Mapping[int, Columns]) -> tuple[Ends, Ends]:
    """The sends and the arrivals of all messages that have both, in the same order."""
    return _joined(_slots(ops, SEND, "address"), _slots(ops, ARRIVAL, "address"))


_Slots = dict[int, list[tuple[int, int]]]
"""Operations on a slot by its address, as (SIP, row), in the order of their ends."""


def _slots(ops: Mapping[int, Columns], name: str, address: str) -> _Slots:
    operations: list[tuple[int, int, int, int]] = []
    for sip, columns in ops.items():
        rows = np.flatnonzero(columns.text("name").equal(name))
        addresses, ends_ps = columns[address][rows], columns["end_ps"][rows]
        operations += zip(
            addresses.tolist(), ends_ps.tolist(), [sip] * len(rows), rows.tolist(), strict=True
        )
    slots: _Slots = {}
    # A slot is filled again only when it has been freed, so its n-th send meets its n-th arrival.
    for slot, _, sip, row in sorted(operations):
        slots.setdefault(slot, []).append((sip, row))
    return slots


def _joined(first: _Slots, second: _Slots) -> tuple[Ends, Ends]:
    pairs = [
        pair
        for address, operations in first.items()
        # A run that failed has messages without arrival.
        for pair in zip(operations, second.get(address, ()), strict=False)
    ]
    return _ends([pair[0] for pair in pairs]), _ends([pair[1] for pair in pairs])


def _ends(operations: Sequence[tuple[int, int]]) -> Ends:
    both = np.array(operations, np.int64).reshape(-1, 2)
    return Ends(both[:, 0], both[:, 1])
