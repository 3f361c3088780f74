"""The rank program: user code as a greenlet beside the chip of its SIP.

Simulated time stands still while the program computes, and passes while it waits for its device.
"""

from collections.abc import Callable, Sequence
from contextvars import copy_context
from typing import TypeVar

from runtime.ccl.config import CclConfig
from runtime.core.requests import Handle, Request, StreamOrder
from runtime.model.topology import Topology
from runtime.torch.rank_state import RankState, current_rank
from sip_node.chip.completion import Completion, completed
from sip_node.chip.failure import ProgramRaised
from sip_node.chip.host.batch import Batch
from sip_node.chip.host.host import Host
from sip_node.pdes.engine import Engine
from sip_node.programs.program import Program

_T = TypeVar("_T")


class RankDevice:
    """The `Device` of a rank program: its calls reach the host component from the event loop."""

    def __init__(self, engine: Engine, host: Host) -> None:
        self._engine, self._host = engine, host
        self.program: Program | None = None

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
        order: StreamOrder = StreamOrder.COMPUTE,
    ) -> Handle:
        """Append a batch to a stream of the host; does not wait for it."""
        return self._program_wait(
            lambda: completed(self._host.submit(requests, why, tensors=tensors, order=order))
        )

    def wait(self, handle: Handle) -> Handle:
        """Sleep until the batch has completed."""
        assert isinstance(handle, Batch)
        self._program_wait(lambda: handle.finished)
        return handle

    def _program_wait(self, start: Callable[[], Completion[_T]]) -> _T:
        assert self.program is not None
        return self.program.wait(start)


class Rank:
    """One rank program on one SIP. `outcome` is what it returned."""

    def __init__(
        self,
        engine: Engine,
        host: Host,
        rank: int,
        configs: tuple[Topology, CclConfig],
        *,
        data: bool,
        main: Callable[[], object],
    ) -> None:
        self.rank, self._host = rank, host
        device = RankDevice(engine, host)
        self.state = RankState(rank, device, *configs, data)
        # The rank is a context variable: several ranks share a process, and each `torch` call must
        # find its own.
        context = copy_context()
        context.run(current_rank.set, self.state)
        self._program = device.program = Program(main, context)
        self._program.finished.then(self._ended)
        self._returned = False
        self.outcome: object = None
        # As the first event of the run, since a program is entered from the loop only.
        engine.at(0, self._program.start)

    @property
    def finished(self) -> bool:
        """Whether the program has returned and all batches of its device have completed."""
        return self._returned and not self._host.current

    @property
    def waiting_for(self) -> str:
        """The purpose of the batch that the device of a rank that has not finished works on."""
        return self._host.current

    def _ended(self, completion: Completion[object]) -> None:
        # Out of the event loop, with the rank: the node reports it to the coordinator.
        if completion.error is not None:
            raise ProgramRaised(self.rank, completion.error)
        self._returned, self.outcome = True, completion.value
