"""The accesses of a replay that may be in a race, each with its clock."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from kernbench.explain.check.accesses import (
    NEVER,
    Accessor,
    BarrierCounts,
    TrackedAccess,
    flight_key,
)
from kernbench.explain.check.clocks import CompletionClock
from kernbench.explain.check.run_calls import ATOMIC, CallRow, SipCalls
from runtime.core.run_tables import BlockAccess

_IN_FLIGHT = ("load_async", "store_async", "gather_async", "composite", "chain", "recv", ATOMIC)
Watched = Mapping[int, AbstractSet[tuple[int, int]]]
"""The pairs, by SIP, of a tensor and a command of which a replay keeps the accesses."""


class WatchedAccesses:
    """Keeps the accesses of calls in `watched`, in the order of the replay."""

    def __init__(self, sips: Mapping[int, SipCalls], watched: Watched) -> None:
        self._sips, self._watched = sips, watched
        self._commands = {sip: {command for _, command in uses} for sip, uses in watched.items()}
        self.accesses: list[TrackedAccess] = []

    def __bool__(self) -> bool:
        return bool(self._watched)

    def has(self, sip: int, command: int) -> bool:
        """Whether accesses of a command are watched."""
        return command in self._commands.get(sip, ())

    def add(
        self, accessor: Accessor, row: CallRow, clock: CompletionClock, barriers: BarrierCounts
    ) -> None:
        """Keep the watched accesses of a call, which begins with all complete that `clock` has."""
        sip, command = accessor.sip, accessor.command
        watched, flight = self._watched.get(sip, ()), flight_key(row.call)
        end = self._end_of(accessor, row)
        self.accesses.extend(
            TrackedAccess(
                accessor,
                row,
                block,
                block.access == BlockAccess.WRITE,
                clock,
                end,
                flight,
                barriers,
            )
            for block in row.blocks
            if block.in_memory and (block.tensor, command) in watched
        )

    def _end_of(self, accessor: Accessor, row: CallRow) -> int:
        """The call from which on the thread of a call is complete with it."""
        if accessor.program is None:
            return NEVER
        if row.operation.startswith(_IN_FLIGHT):
            return self._sips[accessor.sip].first_waits.get(row.call, NEVER)
        return row.call
