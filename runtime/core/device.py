"""The device as a host program sees it, and the streams that order its commands.

Requests that are submitted together are a command of a stream; the requests of a command run side
by side. A command is sent to the IO_CPU at once and waits there until these are complete:

1. the command before it in its stream;
2. commands that its stream was ordered to wait for (an event, another stream, a collective);
3. of every other stream, the latest earlier command that uses one of its tensors;
4. for a launch, earlier launches in the same hardware thread of one of its PEs.

A transfer is in a stream of its own. Rule 3 does not order two transfers that share no byte or only
send, nor a read after a send; rule 4 does not order transfers. A command waits only for what
is earlier in the program, so commands cannot wait for each other in a cycle.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from runtime.core.program_ranges import ProgramRanges
from runtime.core.requests import Request
from runtime.core.trace import OpRecord

DEFAULT_STREAM = 0
"""The number of the stream of a rank that no program has made: its current stream at the start."""
COMMUNICATION_STREAM = 1
"""The number of the stream of the collectives of a rank."""


@dataclass
class Handle:
    """A command on the stream with number `stream`; `results` align with `requests`, times are
    picoseconds.

    `submitted_ps` is the time of the submission, `completed_ps` that of the last answer at the
    host. The IO_CPU released it at `released_ps`, and had seen the end of all requests at
    `device_done_ps`.
    `queued_ps` is the time that the command waited in the host for its turn, and in the IO_CPU for
    other commands. `kernels_ps` is the longest time that a kernel of the command has run so far.
    The properties raise `RuntimeError` until the command is `done`. `holds` are objects that must
    live until then, such as tensors whose memory the command uses.
    """

    requests: tuple[Request, ...]
    submitted_ps: int
    stream: int = DEFAULT_STREAM
    done: bool = False
    completed_ps: int = 0
    released_ps: int = 0
    device_done_ps: int = 0
    queued_ps: int = 0
    kernels_ps: int = 0
    results: list[bytes] = field(default_factory=list[bytes])
    holds: tuple[object, ...] = ()

    @property
    def total_ps(self) -> int:
        """The time from the submission to the last answer."""
        self._check_done()
        return self.completed_ps - self.submitted_ps

    @property
    def pe_exec_ps(self) -> int:
        """The part of `total_ps` during which a kernel ran."""
        self._check_done()
        return self.kernels_ps

    @property
    def network_ps(self) -> int:
        """`total_ps` without kernel execution and without waiting for other commands."""
        return self.total_ps - self.pe_exec_ps - self.queued_ps

    def _check_done(self) -> None:
        if not self.done:
            raise RuntimeError(
                "the launch is not complete: wait with torch.ahbm.synchronize(), "
                "or read a tensor that it writes"
            )


class Device(Protocol):
    """The accelerator as the host program of one rank sees it.

    `stream` is the number of the current stream, which takes the commands that name no stream.
    `ranges` are the named ranges of the program. `faults` are errors that kernels have reported;
    `wait` and `synchronize` raise the first of them, and drop the others, which may follow from it.
    """

    stream: int
    ranges: ProgramRanges
    faults: list[Exception]

    def submit(
        self,
        requests: Sequence[Request],
        why: str,
        *,
        tensors: frozenset[str] = frozenset(),
        stream: int | None = None,
    ) -> Handle:
        """Enqueue a command that uses the tensors of these names; does not wait.

        `why` describes it in error messages. Without requests it is a control packet, which is
        complete when all before it in its stream is. `ValueError` and `PhysAddrError` for a request
        that moves bytes outside of a memory.
        """
        ...

    def new_stream(self) -> int:
        """The number of a new stream."""
        ...

    def order_after(self, stream: int, handles: Sequence[Handle]) -> None:
        """The later commands of `stream` wait for these commands. Sends nothing."""
        ...

    def order_after_stream(self, stream: int, other: int) -> None:
        """The later commands of `stream` wait for what a new command of `other` would wait for as
        the next in that stream. Sends nothing.
        """
        ...

    def latest(self, stream: int | None = None) -> tuple[Handle, ...]:
        """The commands that a new command of `stream` would wait for as the next in the stream;
        without a stream, the last command of every stream that is not complete.
        """
        ...

    def wait(self, handle: Handle) -> Handle:
        """Suspend the host program until the answer to the command has arrived."""
        ...

    def synchronize(self, stream: int | None = None) -> None:
        """Suspend the host program until all commands, or those of a stream, are answered."""
        ...

    def compute(self, name: str, duration_ps: int) -> None:
        """Suspend the host program for the time in which the host computes `name`, as its record
        in the op log has it.
        """
        ...

    def poll(self, kind: str, handles: Callable[[], Sequence[Handle]]) -> bool:
        """Whether all commands that `handles` returns are answered.

        The first call that returns False takes no simulated time. A repeated call of a `kind`
        for the same commands, with nothing submitted in between, suspends the program until the
        next answer to any of its commands: so a loop around a poll ends when what it waits for is
        complete.
        """
        ...

    def begin_recording(self) -> list[OpRecord]:
        """A list that receives every record of this SIP's op log from now on."""
        ...

    def end_recording(self, records: list[OpRecord]) -> None:
        """Add nothing more to a list of `begin_recording`."""
        ...

    @property
    def now_ps(self) -> int:
        """The simulated time of the host program."""
        ...
