"""Replays the calls of a run in an order that its waits allow, and gives each access its clock.

No time is needed: a thread runs until a call has to wait for something that has not come. What
orders two calls is what the second one waited for: earlier calls of its program, operations in
flight, messages, credits, barriers, launches, streams, events, and waits of the host.
"""

from collections import defaultdict, deque
from collections.abc import Hashable, Sequence
from typing import NamedTuple

from kernbench.explain.check.accesses import (
    NEVER,
    NO_BARRIERS,
    Accessor,
    BarrierCounts,
    TrackedAccess,
    flight_key,
)
from kernbench.explain.check.atomics import AtomicTurns
from kernbench.explain.check.clocks import (
    START,
    CompletionClock,
    joined,
    joined_all,
    with_done,
    with_known,
)
from kernbench.explain.check.plain_commands import PlainCommands
from kernbench.explain.check.queues import CallId, queues_of
from kernbench.explain.check.run_calls import ATOMIC, ORDERING, CallRow, ProgramRow, SipCalls
from kernbench.explain.check.threads import CallInFlight, ReplayedThread, ValueObserver
from kernbench.explain.check.watched_accesses import Watched, WatchedAccesses
from runtime.core.errors import InvariantError
from runtime.core.run_tables import NONE, RANK_PROGRAM, Order

_STRICT = frozenset({Order.STREAM, Order.EVENT})


class _BarrierGroup(NamedTuple):
    """The threads that meet in barrier `number` of a launch, or of one of its cubes."""

    sip: int
    command: int
    cube: int
    number: int


class CallReplay:
    """Replays the programs of all SIPs. `accesses` are those `watched`, in an order that the run
    could have had.

    `is_strict` is whether commands are ordered by streams and events alone.
    """

    def __init__(
        self,
        sips: Sequence[SipCalls],
        observer: ValueObserver | None,
        watched: Watched,
        *,
        is_strict: bool,
    ) -> None:
        self._sips = {each.sip: each for each in sips}
        self._observer, self._is_strict = observer, is_strict
        self._queues = queues_of(sips)
        self._tracked = WatchedAccesses(self._sips, watched)
        self._keys = 0
        # Messages and atomic operations in flight.
        self._operations: dict[CallId, CallInFlight] = {}
        self._messages: dict[CallId, CompletionClock] = {}
        # By queue, receives in place whose messages have no slots yet.
        self._stalled = defaultdict[str, list[CallInFlight]](list)
        # By thread and address, the receive of a value that is in its slots, and its queue.
        self._kept = defaultdict[int, dict[int, tuple[CallId, str]]](dict)
        self._ready, self._turns = deque[ReplayedThread](), AtomicTurns()
        self._waiting = defaultdict[Hashable, list[ReplayedThread]](list)
        self._barriers = defaultdict[_BarrierGroup, list[ReplayedThread]](list)
        self._left: dict[tuple[int, int], list[ReplayedThread]] = {}
        self._running: dict[tuple[int, int], int] = {}
        self._submitted: dict[tuple[int, int], CompletionClock] = {}
        self._held = defaultdict[tuple[int, int], list[tuple[int, int]]](list)
        # Commands whose wait has ended. A chain of commands can be longer than the stack of Python.
        self._loose = deque[tuple[int, int]]()
        self.begun: dict[tuple[int, int], CompletionClock] = {}
        """The clock with which each command begins, by SIP and number."""
        self.ended: dict[tuple[int, int], CompletionClock] = {}
        """The clock of what comes after each command."""
        self._copies: dict[tuple[int, int], CallRow] = {}
        self._plain = {each.sip: PlainCommands(each) for each in sips}
        self._programs = {each.sip: each.programs_by_command() for each in sips}

    @property
    def accesses(self) -> list[TrackedAccess]:
        """The accesses that are watched."""
        return self._tracked.accesses

    def run(self) -> None:
        """Replay all calls. `InvariantError` if one waits for what never comes."""
        for sip, calls in self._sips.items():
            accessor = self._accessor(sip, NONE, None)
            [rows] = calls.rows([RANK_PROGRAM])
            self._ready.append(ReplayedThread(accessor, rows, START))
        while self._ready or self._turns:
            self._continue(self._ready.popleft() if self._ready else self._turns.next())
        # Else accesses behind these calls would be passed over.
        left = len(self._running) + len(self._submitted)
        if left:
            raise InvariantError("check", f"every command ends in its replay, and {left} do not")

    def _accessor(self, sip: int, command: int, program: ProgramRow | None) -> Accessor:
        self._keys += 1
        return Accessor(sip, command, self._keys, program, "")

    def _continue(self, thread: ReplayedThread) -> None:
        is_rank, step = thread.accessor.command == NONE, self._step
        while (row := thread.row) is not None:
            if not (self._rank_step(thread, row) if is_rank else step(thread, row)):
                thread.has_begun = True
                return
            thread.advance()
        self._thread_ended(thread)

    def _step(self, thread: ReplayedThread, row: CallRow) -> bool:
        """Replay a call of a kernel; whether it has ended."""
        if not row.queue and not row.operation.startswith(ORDERING):
            if row.blocks:
                self._use(thread.accessor, row, thread.clock, thread.barriers)
            return True
        return self._order(thread, row)

    def _order(self, thread: ReplayedThread, row: CallRow) -> bool:
        """Replay a call that orders calls; whether it has ended."""
        operation = row.operation
        if operation == "wait":
            return self._wait(thread, row)
        if operation.startswith("barrier"):
            return self._barrier(thread, row)
        if operation.startswith("send"):
            return self._send(thread, row)
        if operation.startswith(ATOMIC):
            acquired = self._turns.taken(thread, row)
            if acquired is None:
                return False
            self._started(thread, row, acquired).is_complete = True
            self._use(thread.accessor, row, thread.clock, thread.barriers)
        elif operation.startswith("recv"):
            self._arrive(self._started(thread, row, thread.exported))
        elif operation == "release":
            self._release(thread, row)
        else:
            # A program of a grid.
            fresh = self._accessor(thread.accessor.sip, thread.accessor.command, None)
            thread.accessor = fresh._replace(
                program=thread.accessor.program, grid=operation.removeprefix("program ")
            )
            thread.clock = thread.begun
        return True

    def _rank_step(self, thread: ReplayedThread, row: CallRow) -> bool:
        sip = thread.accessor.sip
        command = sip, row.command
        if row.operation == "submit":
            self._submitted[command] = thread.clock
            if row.blocks:
                self._copies[command] = row
            self._loose.append(command)
            self._begin_all()
            return True
        if row.operation == "zeros":
            # No access: it states that memory is zero because nothing has used it.
            if self._observer is not None:
                self._observer.used(thread.accessor, row, row.blocks)
            return True
        ended = self.ended.get(command)
        if ended is None:
            self._waiting[command].append(thread)
            return False
        thread.clock = joined(thread.clock, ended)
        return True

    def _begin_all(self) -> None:
        while self._loose:
            self._begin(self._loose.popleft())

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
        del self._submitted[command]
        self.begun[command] = clock
        copy = self._copies.pop(command, None)
        if copy is not None:
            known = calls.commands.get(number)
            row = copy._replace(operation="copy", line="" if known is None else known.line)
            self._use(self._accessor(sip, number, None), row, clock, NO_BARRIERS)
        programs = self._programs[sip].get(number, ())
        if number in self._plain[sip] and self._passes(sip, number):
            self._end(command, clock)
            return
        if programs:
            self._running[command] = len(programs)
            # Other calls change no clock.
            only_orders = self._observer is None and not self._tracked.has(sip, number)
            numbers = [each.program for each in programs]
            made = calls.rows(numbers, only_orders=only_orders)
            for program, rows in zip(programs, made, strict=True):
                accessor = self._accessor(sip, number, program)
                self._ready.append(ReplayedThread(accessor, rows, clock))
        else:
            self._end(command, clock)

    def _passes(self, sip: int, number: int) -> bool:
        """Whether nothing is lost if the calls of a plain command are not replayed."""
        if self._tracked.has(sip, number):
            return False
        return self._observer is None or self._observer.passes(sip, number, self._plain[sip])

    def _thread_ended(self, thread: ReplayedThread) -> None:
        sip, number = thread.accessor.sip, thread.accessor.command
        if number == NONE:
            return
        command = sip, number
        self._left.setdefault(command, []).append(thread)
        self._running[command] -= 1
        self._release_all(thread)
        if not self._running[command]:
            del self._running[command]
            threads = self._left.pop(command)
            self._end(command, joined_all(each.clock for each in threads))
            self._begin_all()

    def _end(self, command: tuple[int, int], clock: CompletionClock) -> None:
        self.ended[command] = with_done(clock, command)
        self._wake(command)
        self._loose.extend(self._held.pop(command, ()))

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
        cube, (of_launch, of_cube) = NONE, thread.barriers
        if row.operation.endswith("cube"):
            cube, number = program.cube, of_cube
            thread.barriers = BarrierCounts(of_launch, of_cube + 1)
        else:
            number = of_launch
            thread.barriers = BarrierCounts(of_launch + 1, of_cube)
        group = _BarrierGroup(accessor.sip, accessor.command, cube, number)
        met = self._barriers[group]
        met.append(thread)
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
                self._observer.sent(call, thread.accessor, row)
            receive = queue.receive_of(call)
            if receive is not None and receive in self._operations:
                self._arrive(self._operations[receive])
            if row.operation == "send_async":
                self._started(thread, row, thread.clock)
                return True
        credit = queue.credit(call)
        if credit is None:
            self._waiting[row.queue].append(thread)
            return False
        thread.clock = joined(thread.clock, credit)
        return True

    def _started(
        self, thread: ReplayedThread, row: CallRow, clock: CompletionClock
    ) -> CallInFlight:
        operation = CallInFlight(thread, row, clock)
        call = thread.accessor.sip, row.call
        self._operations[call] = operation
        thread.in_flight.append(call)
        return operation

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
        posted, begun = operation.clock, operation.clock
        if row.operation == "recv in place":
            # Its slots are free: else the value of an earlier message would be in them.
            credit = queue.credit(message)
            if credit is None:
                self._stalled[row.queue].append(operation)
                return
            begun = joined(begun, credit)
        begun = joined(begun, self._messages.pop(message))
        if self._observer is not None:
            self._observer.received(message, accessor, row, row.blocks)
        if self._tracked:
            self._tracked.add(accessor, row, begun, operation.thread.barriers)
        operation.clock, operation.is_complete = begun, True
        if row.operation == "recv in place":
            for block in row.blocks:
                self._kept[accessor.key][block.address] = call, row.queue
        else:
            last = begun
            if any(block.in_memory for block in row.blocks):
                command = accessor.sip, accessor.command
                last = with_known(begun, command, flight_key(row.call), 0)
            self._free(row.queue, call, last, posted)
        self._wake(operation)

    def _free(
        self, name: str, receive: CallId, last: CompletionClock, before: CompletionClock
    ) -> None:
        """The slots of a message are free: go on with what waits for them."""
        self._queues[name].free(receive, last, before)
        self._wake(name)
        for each in self._stalled.pop(name, ()):
            self._arrive(each)

    def _release(self, thread: ReplayedThread, row: CallRow) -> None:
        own = self._kept[thread.accessor.key]
        for block in row.blocks:
            kept = own.pop(block.address, None)
            if kept is not None:
                call, name = kept
                self._free(name, call, thread.exported, thread.exported)

    def _release_all(self, thread: ReplayedThread) -> None:
        """A kernel has ended: its slots are free."""
        key = thread.accessor.key
        for call, name in self._kept.pop(key, {}).values():
            command = thread.accessor.sip, thread.accessor.command
            clock = with_known(thread.clock, command, key, NEVER - 1)
            self._free(name, call, clock, clock)
        for each in thread.in_flight:
            del self._operations[each]

    def _use(
        self, accessor: Accessor, row: CallRow, clock: CompletionClock, barriers: BarrierCounts
    ) -> None:
        if self._tracked:
            self._tracked.add(accessor, row, clock, barriers)
        if self._observer is not None:
            self._observer.used(accessor, row, row.blocks)
