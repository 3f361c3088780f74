"""The work handle of a collective, as PyTorch sees it, and the time of collectives for
`torch.distributed._time_estimator`, which Inductor calls.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from kernbench.torch_backend.distributed.integer_exchange import ReceivedIntegers
from kernbench.torch_backend.distributed.staging import CollectiveStaging
from kernbench.torch_backend.runtime.device_calls import recorded_as
from kernbench.torch_backend.runtime.frame_hook import untraced_methods
from kernbench.torch_backend.runtime.pytorch_api import DEVICE
from runtime.core.device import Handle
from runtime.device.collectives import Work
from runtime.device.rank.rank_state import running_rank


@untraced_methods
class DeviceWork(dist.Work):
    """Queued operations. `wait` makes the current stream wait, and the host goes on, unless it
    `blocks` or a tensor of the host is written. `get_future` has the tensors.
    """

    def __init__(
        self,
        works: Sequence[Work | None],
        staging: CollectiveStaging,
        tensors: list[Tensor],
        received: ReceivedIntegers | None = None,
        *,
        blocks: bool = False,
    ) -> None:
        super().__init__()
        self._works = [work for work in works if work is not None]
        self._staging, self._tensors, self._blocks = staging, tensors, blocks
        self._received, self._waited = received, False
        if received is not None:
            received.begin(tensors, self._works)

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Order the current stream behind the operations; always True."""
        del timeout
        for work in self._works:
            work.wait()
            if self._blocks:
                running_rank().device.wait(work.handle)
        copied = self._staging.copies_back
        self._staging.copy_back()
        if self._received is not None and copied:
            self._received.end(self._tensors)
        self._waited = True
        return True

    def synchronize(self) -> None:
        """The same as `wait`."""
        self.wait()

    def is_completed(self) -> bool:
        """Whether all operations are complete, or the current stream waits for them: what the
        program does next comes behind them.
        """
        return self._waited or all(work.is_completed() for work in self._works)

    def is_success(self) -> bool:
        """True: a collective that fails ends the run."""
        return True

    def result(self) -> list[Tensor]:
        """The tensors of the call."""
        return self._tensors

    def get_future(self) -> Any:
        """A future with the tensors, complete for the host. The stream that is current where the
        program waits for it waits for the operations. Until then no stream does, so work that uses
        other tensors runs beside them.
        """
        works, tensors = self._works, self._tensors
        if self._staging.copies_back:
            self.wait()
        if not works or self._waited or len({each.handle.stream for each in works}) > 1:
            future: torch.futures.Future[list[Tensor]] = torch.futures.Future()
            future.set_result(tensors)
            return future
        # Such a future records an event when it is complete, for which its `wait` makes the current
        # stream wait. The event is the last operation, since their stream is serial.
        future = torch.futures.Future(devices=[torch.device(DEVICE, running_rank().rank)])
        with recorded_as(works[-1].handle):
            future.set_result(tensors)
        return future


_PS_PER_US = 1_000_000


class TimeEstimate:
    """A measurement: the collectives run in the simulation, in scratch memory, on every rank that
    calls them. They take simulated time as any others, and change no tensor.
    """

    def __init__(self) -> None:
        self._handles: list[Handle] = []

    def add(self, works: Sequence[Work | None]) -> None:
        """Count the commands of a collective."""
        self._handles += [work.handle for work in works if work is not None]

    def microseconds(self) -> float:
        """The time from the release of the first command on this rank to the end of the last one; 0
        without any.
        """
        for each in self._handles:
            running_rank().device.wait(each)
        if not self._handles:
            return 0.0
        started_ps = min(each.released_ps for each in self._handles)
        return (max(each.device_done_ps for each in self._handles) - started_ps) / _PS_PER_US
