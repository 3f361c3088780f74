"""Reasons why a wait, or the place of a send, orders nothing, from the rows of calls alone, without
clocks.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import takewhile

from kernbench.explain.check.block_tables import CallBlock
from kernbench.explain.check.run_calls import CallRow, SipCalls
from kernbench.explain.records import RunRecords
from runtime.core.run_tables import BlockAccess
from tests.races.deleted_calls import LATE_SEND, CallSite

ENDS = "no message or barrier of the kernel is behind it, and a kernel ends with its operations"
IN_TCM = "the operation uses values in TCM alone, which the language orders"
ALONE = "no other PE of the launch uses the bytes of memory of the operation, with a write"
USED = "a call in front of the next message or barrier uses the value in TCM, and waits for it"
_SEEN_BY_OTHERS = ("send", "recv", "release", "barrier")


def reasons_at(records: RunRecords, site: CallSite) -> Iterator[str]:
    """The reason for each wait of a site, or for each write that a late send is moved behind; ""
    where there is none.
    """
    is_late = site.kind == LATE_SEND
    lines = site.places_over if is_late else site.places
    for sip in records.sips:
        calls = SipCalls(records, sip)
        launches = defaultdict[int, list[list[CallRow]]](list)
        for each in calls.programs:
            [parts] = calls.rows([each.program])
            launches[each.command].append([row for part in parts for row in part])
        for programs in launches.values():
            for rows in programs:
                if any(each.line in lines for each in rows):
                    peers = [row for other in programs if other is not rows for row in other]
                    reasons = _reasons_of_writes if is_late else _reasons_of_waits
                    yield from reasons(rows, lines, _in_memory(peers))


def _reasons_of_writes(
    rows: Sequence[CallRow], lines: frozenset[str], peers: Sequence[CallBlock]
) -> Iterator[str]:
    for row in rows:
        if row.line in lines:
            yield _reason_of([row], peers)


def _reasons_of_waits(
    rows: Sequence[CallRow], lines: frozenset[str], peers: Sequence[CallBlock]
) -> Iterator[str]:
    operations = {each.call: each for each in rows}
    last = max(
        (n for n, each in enumerate(rows) if each.operation.startswith(_SEEN_BY_OTHERS)), default=-1
    )
    for number, row in enumerate(rows):
        if row.operation != "wait" or row.line not in lines:
            continue
        # A message without elements has no row.
        own = [operations[row.awaits]] if row.awaits in operations else []
        if number > last:
            yield ENDS
        else:
            yield _reason_of(own, peers) or (USED if _is_used(own, rows[number + 1 :]) else "")


def _reason_of(rows: Sequence[CallRow], peers: Sequence[CallBlock]) -> str:
    own = _in_memory(rows)
    if not own:
        return IN_TCM
    return "" if any(_conflict(each, other) for each in own for other in peers) else ALONE


def _is_used(own: Sequence[CallRow], later: Sequence[CallRow]) -> bool:
    """Whether a value that a call writes is used in front of the next call that others see."""
    values = [block for row in own for block in row.blocks if not block.in_memory]
    for row in takewhile(lambda row: not row.operation.startswith(_SEEN_BY_OTHERS), later):
        used = [block for block in row.blocks if not block.in_memory]
        if any(_conflict(each, other) for each in values for other in used):
            return True
    return False


def _in_memory(rows: Sequence[CallRow]) -> list[CallBlock]:
    return [block for row in rows for block in row.blocks if block.in_memory]


def _conflict(one: CallBlock, other: CallBlock) -> bool:
    """Whether bytes from the first to the last of both overlap, and one of them is written."""
    return (
        BlockAccess.WRITE in (one.access, other.access)
        and one.address < other.address + other.layout.span_bytes
        and other.address < one.address + one.layout.span_bytes
    )
