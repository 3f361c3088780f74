"""Replays the steps of a launch with other times, and gives the time that the launch would take.

A program keeps its order. A step begins when its predecessor ends, and takes its recorded time or
another one; a wait for an operation in flight ends when the operation, requested by an earlier
step, has ended; a receive ends when its message has come, which leaves as much earlier or later as
its sender; a barrier ends when its last PE has called it. Engines, links and memories that a step
competes for keep their recorded queues, unless the caller changes the time of the step.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Mapping

from msgspec import Struct

from kernbench.explain.advice.steps import LaunchSteps, PeProgram, PeStep, StepClass
from kernbench.explain.why.slots import OpOfSip, SlotJoins
from runtime.core.run_tables import NONE

StepKey = tuple[int, int]
"""A SIP, and the row of a step."""


class Changes(Struct, frozen=True):
    """The changes of a replay: the time of steps, negative for less, and of operations in flight.

    `dropped` are steps that the program leaves out.
    """

    steps: Mapping[StepKey, int] = {}
    ops: Mapping[tuple[int, int], int] = {}
    dropped: Collection[StepKey] = frozenset()


class MessageArrival(Struct, frozen=True):
    """A message that a step waited for: its sender, when it was sent, and when it had arrived."""

    sender: tuple[int, int, int]
    sent_ps: int
    arrived_ps: int


class LaunchReplay:
    """Replays of one launch; `slots` joins the messages between its PEs."""

    def __init__(self, steps: LaunchSteps, slots: SlotJoins) -> None:
        self._programs, self._slots = steps.programs, slots
        self._launch = steps
        self._order = sorted(
            (step.end_ps, number, step.row, step)
            for number, program in enumerate(steps.programs)
            for step in program.steps
        )
        self._number_of = {
            (each.sip, each.cube, each.pe): number for number, each in enumerate(steps.programs)
        }
        self._groups = _barrier_groups(steps.programs)

    def time_ps(self, changes: Changes) -> int:
        """The time of the launch with these changes."""
        count = len(self._programs)
        shifts = [0] * count
        history: list[tuple[list[int], list[int]]] = [([], []) for _ in range(count)]
        released: dict[int, int] = {}
        for _, number, _, step in self._order:
            program = self._programs[number]
            key = program.sip, step.row
            if key in changes.dropped:
                shifts[number] -= step.time_ps
            elif step.of is StepClass.BARRIER and key in self._groups:
                shifts[number] = self._barrier_shift(key, shifts, released)
            else:
                shifts[number] = self._shift(program, number, step, shifts, history, changes)
            history[number][0].append(step.end_ps)
            history[number][1].append(shifts[number])
        ends = [each.end_ps + shift for each, shift in zip(self._programs, shifts, strict=True)]
        return max(max(ends) - self._launch.begin_ps, 0)

    def _barrier_shift(self, key: StepKey, shifts: list[int], released: dict[int, int]) -> int:
        group, members, arrivals = self._groups[key]
        if group not in released:
            # The predecessors of all members have ended, so their shifts are those at the barrier.
            last_ps = max(arrived + shifts[member] for member, arrived in members)
            released[group] = last_ps - arrivals
        return released[group]

    def _shift(
        self,
        program: PeProgram,
        number: int,
        step: PeStep,
        shifts: list[int],
        history: list[tuple[list[int], list[int]]],
        changes: Changes,
    ) -> int:
        changed_ps = changes.steps.get((program.sip, step.row), 0)
        before = shifts[number]
        if step.op == NONE:
            return before + changed_ps
        if step.is_async_wait:
            ends_ps = min(self._op_end_ps(program.sip, step), step.end_ps)
            of_op = _shift_at(history[number], step.requested_ps)
            of_op += changes.ops.get((program.sip, step.op), 0)
            return self._later(step, ends_ps, before, of_op) + changed_ps
        if step.of is StepClass.MESSAGE:
            arrival = self._arrival(program.sip, step)
            if arrival is not None and arrival.sender in self._number_of:
                sender = self._number_of[arrival.sender]
                of_sender = _shift_at(history[sender], arrival.sent_ps)
                ends_ps = min(arrival.arrived_ps, step.end_ps)
                return self._later(step, ends_ps, before, of_sender) + changed_ps
        return before + changed_ps

    def _later(self, step: PeStep, ends_ps: int, own: int, other: int) -> int:
        """The shift of the end of a step behind both its own issue and what it waits for."""
        was_ps = max(step.issued_ps, ends_ps)
        return max(step.issued_ps + own, ends_ps + other) - was_ps

    def _op_end_ps(self, sip: int, step: PeStep) -> int:
        return self._slots.end_ps(OpOfSip(sip, step.op))

    def _arrival(self, sip: int, step: PeStep) -> MessageArrival | None:
        op = OpOfSip(sip, step.op)
        send = self._slots.send_of_receive(op) if self._slots.is_receive(op) else None
        arrival = send and self._slots.arrival_of_send(send)
        if not send or not arrival:
            return None
        sender = (send.sip, *self._slots.pe_of(send))
        return MessageArrival(sender, self._slots.start_ps(send), self._slots.end_ps(arrival))


def _shift_at(history: tuple[list[int], list[int]], time_ps: int) -> int:
    """The shift of a program at a recorded time: that of its last step until then."""
    ends, shifts = history
    index = bisect_right(ends, time_ps) - 1
    return shifts[index] if index >= 0 else 0


BarrierGroup = tuple[int, tuple[tuple[int, int], ...], int]
"""Number of the barrier, its programs with the times of their calls, and the last of these."""


def _barrier_groups(programs: tuple[PeProgram, ...]) -> dict[StepKey, BarrierGroup]:
    """The barriers of a launch: the n-th of a program meets the n-th of the others of its rank, or
    of its cube where a cube goes on before the others have come.
    """
    by_call = defaultdict[tuple[int, int], list[tuple[int, PeStep]]](list)
    for number, program in enumerate(programs):
        for count, step in enumerate(program.barriers):
            by_call[program.sip, count].append((number, step))
    groups: dict[StepKey, BarrierGroup] = {}
    for (sip, _), members in sorted(by_call.items()):
        for together in _meeting(programs, members):
            calls = tuple((number, step.begin_ps) for number, step in together)
            last_ps = max(time_ps for _, time_ps in calls)
            group = len(groups), calls, last_ps
            groups |= {(sip, step.row): group for _, step in together}
    return groups


def _meeting(
    programs: tuple[PeProgram, ...], members: list[tuple[int, PeStep]]
) -> list[list[tuple[int, PeStep]]]:
    last_ps = max(step.issued_ps for _, step in members)
    if all(step.end_ps >= last_ps for _, step in members):
        return [members]
    cubes = defaultdict[int, list[tuple[int, PeStep]]](list)
    for number, step in members:
        cubes[programs[number].cube].append((number, step))
    return [cubes[cube] for cube in sorted(cubes)]
