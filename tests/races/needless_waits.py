"""Reasons why a wait orders nothing, from the rows of calls alone, without clocks."""

from collections.abc import Iterator, Sequence

from kernbench.explain.check.run_calls import CallBlock, CallRow, SipCalls
from kernbench.explain.records import RunRecords
from runtime.core.run_tables import BlockAccess

ENDS = "no message or barrier of the kernel is behind it, and a kernel ends with its operations"
IN_TCM = "the operation uses values in TCM alone, which the language orders"
ALONE = "no other PE of the launch uses the bytes of memory of the operation, with a write"
_SEEN_BY_OTHERS = ("send", "recv", "release", "barrier")


def reasons_at(records: RunRecords, lines: frozenset[str]) -> Iterator[str]:
    """The reason for each wait at some lines, "" where there is none."""
    for sip in records.sips:
        calls = SipCalls(records, sip)
        commands = {each.program: each.command for each in calls.programs}
        for program, rows in calls.by_program.items():
            if program not in commands or not any(each.line in lines for each in rows):
                continue
            peers = [
                block
                for other, command in commands.items()
                if other != program and command == commands[program]
                for row in calls.by_program.get(other, ())
                for block in calls.blocks.get(row.call, ())
                if block.in_memory
            ]
            yield from _reasons(calls, rows, lines, peers)


def _reasons(
    calls: SipCalls, rows: Sequence[CallRow], lines: frozenset[str], peers: Sequence[CallBlock]
) -> Iterator[str]:
    last = max(
        (n for n, each in enumerate(rows) if each.operation.startswith(_SEEN_BY_OTHERS)), default=-1
    )
    for number, row in enumerate(rows):
        if row.operation != "wait" or row.line not in lines:
            continue
        own = [each for each in calls.blocks.get(row.awaits, ()) if each.in_memory]
        if number > last:
            yield ENDS
        elif not own:
            yield IN_TCM
        else:
            yield "" if any(_conflict(each, other) for each in own for other in peers) else ALONE


def _conflict(one: CallBlock, other: CallBlock) -> bool:
    """Whether bytes from the first to the last of both overlap, and one of them is written."""
    return (
        BlockAccess.WRITE in (one.access, other.access)
        and one.address < other.address + other.layout.span_bytes
        and other.address < one.address + one.layout.span_bytes
    )
