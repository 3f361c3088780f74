"""The rank program: user code as a greenlet beside the chip of its SIP.

Simulated time stands still while the program computes, and passes while it waits for its device.
"""

from collections.abc import Callable, Sequence
from contextvars import copy_context
from typing import TypeVar

from runtime.ccl.config import CclConfig
from runtime.ccl.ring_allocator import InstallPlans
from runtime.core.device import DEFAULT_STREAM, Handle
from runtime.core.program_ranges import ProgramRange, ProgramRanges
from runtime.core.requests import Request
from runtime.core.run_tables import Cause
from runtime.core.trace import OpRecord
from runtime.device.rank.rank_state import ProcessGroup, RankState, current_rank
from runtime.language.caller import program_line
from runtime.language.other_languages import program_hint
from runtime.model.topology import Topology
from runtime.wire.control import GroupCalls, RankActivity, SlowCall
from sip_node.chip.completion import Completion, completed
from sip_node.chip.host.host import Host
from sip_node.chip.host.rank_calls import RankCalls
from sip_node.chip.host.streams import Command
from sip_node.chip.kernel import ProgramRaised
from sip_node.pdes.engine import Engine
from sip_node.programs.program import Program
from sip_node.programs.program_stacks import ProgramStacks
from sip_node.programs.program_steps import RANK_THREAD, ProgramOrigin, ProgramSteps

_T = TypeVar("_T")


class RankDevice:
    """The `Device` of a rank program: its calls reach the host component from the event loop."""

    def __init__(self, engine: Engine, host: Host) -> None:
        self._engine, self._host = engine, host
        self.program: Program | None = None
        self.ranges = ProgramRanges()
        self.faults = list[Exception]()
        self.stream = DEFAULT_STREAM
        self.steps: ProgramSteps | None = None
        self.calls: RankCalls | None = None
        self._seen: int | None = None
        # What was polled in vain since the last command or answer.
        self._polled = set[tuple[str, tuple[int, ...]]]()

    @property
    def now_ps(self) -> int:
        """The simulated time."""
        return self._engine.now_ps

    def submit(
        self,
        requests: Sequence[Request],
        why: str,
        *,
        tensors: frozenset[str] = frozenset(),
        stream: int | None = None,
    ) -> Handle:
        """Append a command to a stream of the host; does not wait for it."""
        chosen = self.stream if stream is None else stream
        self._polled.clear()
        handle = self._program_wait(
            lambda: completed(self._host.submit(requests, why, tensors=tensors, stream=chosen))
        )
        self.ranges.submitted(handle)
        if self.steps is not None:
            handle.line = program_line()
        if self.calls is not None:
            self.calls.submitted(handle, handle.line)
        return handle

    def new_stream(self) -> int:
        """The number of a new stream."""
        return self._host.streams.new_stream()

    def order_after(self, stream: int, handles: Sequence[Handle]) -> None:
        """The later commands of `stream` wait for these commands."""
        self._host.order_after(stream, handles)

    def order_after_stream(self, stream: int, other: int) -> None:
        """The later commands of `stream` wait for what the next one of `other` would wait for."""
        self._host.order_after_stream(stream, other)

    def latest(self, stream: int | None = None) -> tuple[Handle, ...]:
        """The commands that a new command of `stream` would wait for as the next in the stream;
        without a stream, the last command of every stream that is not complete.
        """
        streams, self._seen = self._host.streams, stream
        return streams.all_latest() if stream is None else streams.latest(stream)

    def wait(self, handle: Handle) -> Handle:
        """Sleep until the command is answered."""
        assert isinstance(handle, Command)
        self._host.program_waits(handle)
        self._step(Cause.COMMAND, 0, lambda: handle.finished)
        if self.calls is not None:
            self.calls.waited((handle.number,))
        self._raise_fault()
        return handle

    def synchronize(self, stream: int | None = None) -> None:
        """Sleep until all commands, or those of a stream, are answered."""
        # The last command of each stream is the last to be answered.
        for command in self.latest(stream):
            self.wait(command)
        if self.calls is not None:
            self.calls.waited(self._host.preceding(stream))
        self._raise_fault()

    def compute(self, name: str, duration_ps: int) -> None:
        """Sleep while the host computes."""
        self._polled.clear()
        self._step(Cause.NONE, duration_ps, lambda: self._host.compute(name, duration_ps))

    def poll(self, kind: str, handles: Callable[[], Sequence[Handle]]) -> bool:
        """Whether the commands are answered; a repeated poll first waits for the next answer."""
        self._seen = None
        polled = handles()
        open_commands = _open(polled)
        if (kind, open_commands) in self._polled:
            # A loop around a poll submits nothing. It waits here, as the loop of a real host does.
            self._host.program_waits(None)
            self._step(Cause.COMMAND, 0, self._host.next_answer)
            self._polled.clear()
            polled = handles()
            open_commands = _open(polled)
        if open_commands:
            self._polled.add((kind, open_commands))
        elif self.calls is not None:
            self.calls.waited(each.number for each in polled if isinstance(each, Command))
            if self._seen is not None:
                # A stream without open commands, which has none left to return.
                self.calls.waited(self._host.preceding(self._seen))
        return not open_commands

    def begin_recording(self) -> list[OpRecord]:
        """A list that receives every record of this SIP's op log from now on."""
        return self._host.log.begin_recording()

    def end_recording(self, records: list[OpRecord]) -> None:
        """Add nothing more to a list of `begin_recording`."""
        self._host.log.end_recording(records)

    def _raise_fault(self) -> None:
        if self.faults:
            first = self.faults[0]
            self.faults.clear()
            raise first

    def _step(self, cause: Cause, issue_ps: int, start: Callable[[], Completion[None]]) -> None:
        """Sleep until a completion, in a step that begins with `issue_ps` of work of the host."""
        if self.steps is None:
            self._program_wait(start)
        else:
            assert self.program is not None
            self.program.carry_out(self.steps.rank_step(cause, issue_ps, (start, ())))

    def _program_wait(self, start: Callable[[], Completion[_T]]) -> _T:
        assert self.program is not None
        return self.program.wait(start)


def _calls(group: ProcessGroup) -> GroupCalls:
    is_open = ((number, name) for number, name, handle in group.open_calls if not handle.done)
    number, name = next(is_open, (0, ""))
    return GroupCalls(
        group=group.title,
        ranks=group.sips,
        timeout_s=group.timeout_s,
        calls=group.calls,
        open_call=number,
        open_name=name,
        slow_calls=tuple(SlowCall(*call) for call in group.slow_calls),
    )


def _open(handles: Sequence[Handle]) -> tuple[int, ...]:
    """The numbers of the commands that are not answered."""
    return tuple(each.number for each in handles if isinstance(each, Command) and not each.done)


class Rank:
    """A rank program on one SIP. `outcome` is what it returned.

    `plans` are those of all ranks of the LP.
    """

    def __init__(
        self,
        engine: Engine,
        host: Host,
        rank: int,
        configs: tuple[Topology, CclConfig],
        *,
        data: bool,
        plans: InstallPlans,
        main: Callable[[], object],
    ) -> None:
        self.rank, self._engine, self._host = rank, engine, host
        self._device = device = RankDevice(engine, host)
        self.state = RankState(rank, device, *configs, data, plans)
        # The rank is a context variable: several ranks share a process, and each `torch` call must
        # find its own.
        context = copy_context()
        context.run(current_rank.set, self.state)
        self._stacks = ProgramStacks()
        self._program = device.program = Program(
            lambda: self._run(main), self._stacks, context, self.state.clock
        )
        self._program.finished.then(self._ended)
        self._returned = False
        self.outcome: object = None
        # As the first event of the run, since a program is entered from the loop only.
        host.start(self._program.start)

    @property
    def finished(self) -> bool:
        """Whether the program has returned and all commands of its device have completed."""
        return self._returned and not self._host.current

    @property
    def ranges(self) -> Sequence[ProgramRange]:
        """The named ranges of the program, once it has finished."""
        return self._device.ranges.complete()

    @property
    def activity(self) -> RankActivity:
        """The activity of the rank so far. Another thread may read it."""
        groups = tuple(_calls(group) for group in self.state.limited_groups)
        return RankActivity(self.rank, self.state.clock.total_s, groups)

    @property
    def waiting_for(self) -> str:
        """The purpose of the earliest command that is not complete."""
        return self._host.current

    def close(self) -> None:
        """End the program, if it waits."""
        self._stacks.close()

    def _run(self, main: Callable[[], object]) -> object:
        log = self._host.log
        if log.recorder is None:
            return _to_the_end(main, self.state)
        origin = ProgramOrigin(kernel="", thread=RANK_THREAD)
        self._device.steps = ProgramSteps(self._engine, log, origin)
        calls = RankCalls(log.recorder, lambda: self._engine.now_ps)
        self._device.calls = calls
        self.state.memory.made, self.state.memory.zeros = calls.made, calls.zeros
        with self._device.steps:
            return _to_the_end(main, self.state)

    def _ended(self, completion: Completion[object]) -> None:
        # Out of the event loop, with the rank: the node reports it to the coordinator.
        if completion.error is not None:
            raise ProgramRaised(self.rank, completion.error)
        self._returned, self.outcome = True, completion.value
        self._host.program_ended()


def _to_the_end(main: Callable[[], object], state: RankState) -> object:
    try:
        outcome = main()
    except (TypeError, ModuleNotFoundError) as error:
        hint = program_hint(error)
        if hint is not None:
            error.add_note(hint)
        raise
    for each in state.at_end:
        each()
    return outcome
