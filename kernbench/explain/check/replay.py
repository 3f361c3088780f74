"""Replays the calls of a run in an order that its waits allow, and gives each access its clock.

No time is needed: a thread runs until a call has to wait for something that has not come. What
orders two calls is what the second one waited for: earlier calls of its program, operations in
flight, messages, credits, barriers, launches, streams, events, and waits of the host.
"""

from collections import defaultdict, deque
from collections.abc import Hashable, Iterator, Sequence
from typing import NamedTuple

from kernbench.explain.check.accesses import NEVER, Accessor, TrackedAccess, flight_key
from kernbench.explain.check.clocks import (
    START,
    CompletionClock,
    is_done,
    joined,
    joined_all,
    with_done,
    with_known,
)
from kernbench.explain.check.queues import CallId, queues_of
from kernbench.explain.check.run_calls import (
    CallBlock,
    CallRow,
    ProgramRow,
    SipCalls,
    copy_of_host,
)
from kernbench.explain.check.threads import CallInFlight, ReplayedThread, ValueObserver
from runtime.core.run_tables import NONE, RANK_PROGRAM, Order
from runtime.core.run_tables import BlockAccess as Use

_IN_FLIGHT = ("load_async", "store_async", "gather_async", "composite", "chain", "recv")
_STRICT = frozenset({Order.STREAM, Order.EVENT})


class _BarrierGroup(NamedTuple):
    """The threads that meet in a barrier."""

    sip: int
    command: int
    cube: int
    number: int


class CallReplay:
    """Replays the programs of all SIPs. `accesses` are those to memory, in an order that the run
    could have had.

    `is_strict` is whether commands are ordered by streams and events alone.
    """

    def __init__(
        self, sips: Sequence[SipCalls], observer: ValueObserver | None, *, is_strict: bool
    ) -> None:
        self._sips = {each.sip: each for each in sips}
        self._observer, self._is_strict = observer, is_strict
        self._queues = queues_of(
            (each.sip, row) for each in sips for rows in each.by_program.values() for row in rows
        )
        self.accesses: list[TrackedAccess] = []
        self._keys = 0
        self._commands: dict[int, tuple[int, int]] = {}
        self._operations: dict[CallId, CallInFlight] = {}
        self._messages: dict[CallId, CompletionClock] = {}
        self._kept: dict[tuple[int, int, int], tuple[CallId, str, CompletionClock]] = {}
        self._ready = deque[ReplayedThread]()
        self._waiting = defaultdict[Hashable, list[ReplayedThread]](list)
        self._barriers = defaultdict[_BarrierGroup, list[ReplayedThread]](list)
        self._left: dict[tuple[int, int], list[ReplayedThread]] = {}
        self._running: dict[tuple[int, int], int] = {}
        self._submitted: dict[tuple[int, int], CompletionClock] = {}
        self._held = defaultdict[tuple[int, int], list[tuple[int, int]]](list)
        self.begun: dict[tuple[int, int], CompletionClock] = {}
        """The clock with which each command begins, by SIP and number."""
        self.ended: dict[tuple[int, int], CompletionClock] = {}
        """The clock of what comes after each command."""
        self._ends = {each.sip: _ends(each) for each in sips}
        self._programs = {each.sip: _by_command(each) for each in sips}

    def run(self) -> None:
        """Replay all that can be."""
        for sip, calls in self._sips.items():
            accessor = self._accessor(sip, NONE, None)
            self._ready.append(
                ReplayedThread(accessor, calls.by_program.get(RANK_PROGRAM, ()), START)
            )
        while self._ready:
            self._continue(self._ready.popleft())

    def _accessor(self, sip: int, command: int, program: ProgramRow | None) -> Accessor:
        self._keys += 1
        self._commands[self._keys] = sip, command
        return Accessor(sip, command, self._keys, program, "")

    def _continue(self, thread: ReplayedThread) -> None:
        rows = thread.rows
        while thread.index < len(rows):
            if not self._step(thread, rows[thread.index]):
                thread.has_begun = True
                return
            thread.index += 1
            thread.has_begun = False
        self._thread_ended(thread)

    def _step(self, thread: ReplayedThread, row: CallRow) -> bool:
        """Replay a call; whether it has ended."""
        operation = row.operation
        if thread.accessor.command == NONE:
            return self._rank_step(thread, row)
        if operation == "wait":
            return self._wait(thread, row)
        if operation.startswith("barrier"):
            return self._barrier(thread, row)
        if operation.startswith("send"):
            return self._send(thread, row)
        if operation.startswith("recv"):
            self._receive(thread, row)
        elif operation == "release":
            self._release(thread, row)
        elif operation.startswith("program "):
            fresh = self._accessor(thread.accessor.sip, thread.accessor.command, None)
            thread.accessor = fresh._replace(
                program=thread.accessor.program, grid=operation.removeprefix("program ")
            )
            thread.clock = thread.begun
        else:
            self._use(thread, row, thread.clock)
            if operation.startswith(_IN_FLIGHT):
                done = CallInFlight(thread, row, thread.clock)
                done.is_complete = True
                self._operations[thread.accessor.sip, row.call] = done
        return True

    def _rank_step(self, thread: ReplayedThread, row: CallRow) -> bool:
        sip = thread.accessor.sip
        command = sip, row.command
        if row.operation == "submit":
            self._submitted[command] = thread.clock
            self._begin(command)
            return True
        if row.operation == "zeros":
            # No access: it states that memory is zero because nothing has used it.
            if self._observer is not None:
                self._observer.used(thread.accessor, row, self._blocks(sip, row))
            return True
        ended = self.ended.get(command)
        if ended is None:
            self._waiting[command].append(thread)
            return False
        thread.clock = joined(thread.clock, ended)
        return True

    def _begin(self, command: tuple[int, int]) -> None:
        """Begin a command if all have ended that it waits for."""
        sip, number = command
        calls, clock = self._sips[sip], self._submitted[command]
        for after, reason in calls.orders.get(number, ()):
            ended = self.ended.get((sip, after))
            if ended is None:
                self._held[sip, after].append(command)
                return
            if not self._is_strict or reason in _STRICT:
                clock = joined(clock, ended)
        self.begun[command] = clock
        call = calls.submits[number]
        blocks = calls.blocks.get(call, ())
        if blocks:
            row = copy_of_host(call, number, calls.commands.get(number))
            self._use_blocks(self._accessor(sip, number, None), row, blocks, clock, NEVER, 0)
        programs = self._programs[sip].get(number, ())
        self._running[command] = len(programs)
        for program in programs:
            rows = calls.by_program.get(program.program, ())
            self._ready.append(ReplayedThread(self._accessor(sip, number, program), rows, clock))
        if not programs:
            self._end(command, clock)

    def _thread_ended(self, thread: ReplayedThread) -> None:
        sip, number = thread.accessor.sip, thread.accessor.command
        if number == NONE:
            return
        command = sip, number
        self._left.setdefault(command, []).append(thread)
        self._running[command] -= 1
        self._release_all(thread)
        if not self._running[command]:
            threads = self._left.pop(command)
            self._end(command, joined_all(each.clock for each in threads))

    def _end(self, command: tuple[int, int], clock: CompletionClock) -> None:
        sip, number = command
        done, known = with_done(clock, sip, number)
        if known:
            kept = {key: call for key, call in known.items() if not self._is_done(done, key)}
            known = known if len(kept) == len(known) else kept
        self.ended[command] = CompletionClock(done, known)
        self._wake(command)
        for each in self._held.pop(command, ()):
            if each not in self.begun:
                self._begin(each)

    def _is_done(self, done: object, key: int) -> bool:
        """Whether the command of a thread is complete, by the first part of a clock."""
        sip, command = self._commands[key]
        return is_done(CompletionClock(done, {}), sip, command)  # type: ignore[arg-type]

    def _wake(self, event: Hashable) -> None:
        self._ready.extend(self._waiting.pop(event, ()))

    def _wait(self, thread: ReplayedThread, row: CallRow) -> bool:
        operation = self._operations.get((thread.accessor.sip, row.awaits))
        if operation is None:
            return True
        if not operation.is_complete and not self._complete(operation):
            # A send waits for free slots of its queue, a receive for its message.
            is_send = operation.row.operation.startswith("send")
            self._waiting[operation.row.queue if is_send else operation].append(thread)
            return False
        thread.clock = joined(thread.clock, operation.clock)
        return True

    def _complete(self, operation: CallInFlight) -> bool:
        """Complete a message in flight, if it can be; whether it is complete."""
        if operation.row.operation.startswith("send"):
            call = operation.thread.accessor.sip, operation.row.call
            queue = self._queues[operation.row.queue]
            credit = queue.credit(call)
            if credit is None:
                return False
            operation.clock = joined(operation.clock, credit)
            operation.is_complete = True
        return operation.is_complete

    def _barrier(self, thread: ReplayedThread, row: CallRow) -> bool:
        if thread.has_begun:
            return True
        accessor = thread.accessor
        program = accessor.program
        assert program is not None, "a kernel calls a barrier"
        cube = program.cube if row.operation.endswith("cube") else NONE
        group = _BarrierGroup(accessor.sip, accessor.command, cube, thread.barriers)
        met = self._barriers[group]
        met.append(thread)
        thread.barriers += 1
        programs = self._programs[accessor.sip][accessor.command]
        expected = sum(each.cube == cube for each in programs) if cube != NONE else len(programs)
        if len(met) < expected:
            return False
        del self._barriers[group]
        clock = joined_all(each.exported for each in met)
        for each in met:
            each.clock = clock
            if each is not thread:
                self._ready.append(each)
        return True

    def _send(self, thread: ReplayedThread, row: CallRow) -> bool:
        sip = thread.accessor.sip
        call, queue = (sip, row.call), self._queues[row.queue]
        if not thread.has_begun:
            self._messages[call] = thread.exported
            if self._observer is not None:
                self._observer.sent(call, thread.accessor, self._blocks(sip, row))
            receive = queue.receive_of(call)
            if receive is not None and receive in self._operations:
                self._arrive(self._operations[receive])
            if row.operation == "send_async":
                self._operations[call] = CallInFlight(thread, row, thread.clock)
                return True
        credit = queue.credit(call)
        if credit is None:
            self._waiting[row.queue].append(thread)
            return False
        thread.clock = joined(thread.clock, credit)
        return True

    def _receive(self, thread: ReplayedThread, row: CallRow) -> None:
        operation = CallInFlight(thread, row, thread.exported)
        call = thread.accessor.sip, row.call
        self._operations[call] = operation
        self._arrive(operation)

    def _arrive(self, operation: CallInFlight) -> None:
        """Complete a receive if its message is sent."""
        row, accessor = operation.row, operation.thread.accessor
        call = accessor.sip, row.call
        if not row.queue:
            # A message without elements.
            operation.is_complete = True
            return
        queue = self._queues[row.queue]
        message = queue.message_of(call)
        if message is None or message not in self._messages:
            return
        posted = operation.clock
        begun = joined(posted, self._messages.pop(message))
        blocks = self._blocks(accessor.sip, row)
        flight = flight_key(accessor.sip, row.call)
        self._commands[flight] = accessor.sip, accessor.command
        if self._observer is not None:
            self._observer.received(message, accessor, row, blocks)
        self._use_blocks(
            accessor,
            row,
            blocks,
            begun,
            self._end_of(accessor.sip, row),
            operation.thread.barriers,
            is_followed=False,
        )
        operation.clock, operation.is_complete = begun, True
        if row.operation == "recv in place":
            for block in blocks:
                self._kept[accessor.sip, accessor.key, block.address] = call, row.queue, begun
        else:
            queue.free(call, with_known(begun, flight, 0), posted)
            self._wake(row.queue)
        self._wake(operation)

    def _release(self, thread: ReplayedThread, row: CallRow) -> None:
        sip, key = thread.accessor.sip, thread.accessor.key
        for block in self._blocks(sip, row):
            kept = self._kept.pop((sip, key, block.address), None)
            if kept is not None:
                call, name, _ = kept
                self._queues[name].free(call, thread.exported, thread.exported)
                self._wake(name)

    def _release_all(self, thread: ReplayedThread) -> None:
        """A kernel has ended: its slots are free."""
        own = thread.accessor.sip, thread.accessor.key
        for place in [each for each in self._kept if each[:2] == own]:
            call, name, _ = self._kept.pop(place)
            clock = with_known(thread.clock, own[1], NEVER - 1)
            self._queues[name].free(call, clock, clock)
            self._wake(name)

    def _blocks(self, sip: int, row: CallRow) -> Sequence[CallBlock]:
        return self._sips[sip].blocks.get(row.call, ())

    def _end_of(self, sip: int, row: CallRow) -> int:
        """The call from which on the thread of a call is complete with it."""
        if row.operation.startswith(_IN_FLIGHT):
            return self._ends[sip].get(row.call, NEVER)
        return row.call

    def _use(self, thread: ReplayedThread, row: CallRow, clock: CompletionClock) -> None:
        accessor = thread.accessor
        blocks, end = self._blocks(accessor.sip, row), self._end_of(accessor.sip, row)
        self._use_blocks(accessor, row, blocks, clock, end, thread.barriers)

    def _use_blocks(
        self,
        accessor: Accessor,
        row: CallRow,
        blocks: Sequence[CallBlock],
        clock: CompletionClock,
        end: int,
        barriers: int,
        *,
        is_followed: bool = True,
    ) -> None:
        flight = flight_key(accessor.sip, row.call)
        self.accesses.extend(
            TrackedAccess(
                accessor, row, block, block.access == Use.WRITE, clock, end, flight, barriers
            )
            for block in blocks
            if block.in_memory
        )
        if self._observer is not None and is_followed and blocks:
            self._observer.used(accessor, row, blocks)


def _ends(calls: SipCalls) -> dict[int, int]:
    """The first wait for each operation in flight."""
    ends: dict[int, int] = {}
    for row in _rows(calls):
        if row.awaits != NONE:
            ends[row.awaits] = min(row.call, ends.get(row.awaits, NEVER))
    return ends


def _rows(calls: SipCalls) -> Iterator[CallRow]:
    for rows in calls.by_program.values():
        yield from rows


def _by_command(calls: SipCalls) -> dict[int, list[ProgramRow]]:
    programs = defaultdict[int, list[ProgramRow]](list)
    for each in sorted(calls.programs):
        programs[each.command].append(each)
    return programs
