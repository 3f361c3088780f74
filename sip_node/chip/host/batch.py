"""The two streams of a rank, and which batch waits for which.

Two streams, as in CUDA: compute and collectives. Work in a stream is serial; across streams a batch
waits for conflicting tensors. A batch is what CUDA calls a command: requests that run together.

    compute       C1 --> C2 --------------> C3    C3 waits for C2, for A1 if they share a tensor
                          |                 ^
    collectives           '--> A1 - - - - - '     A1 waits for C2, and so for C1

A batch waits for at most one of each stream, since all before it in that stream are complete first.
A batch of the collectives stream waits for the latest of the compute stream, so for everything
before it. A batch of the compute stream waits for the latest collective that it must not overtake:
a `BARRIER`, or a `COLLECTIVE` with a tensor of its own.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from runtime.core.requests import Handle, StreamOrder
from sip_node.chip.completion import Completion


@dataclass
class Batch(Handle):
    """Requests that run together; `finished` completes when the last of them does.

    `left` of its requests have not completed. It begins when `waits_for` earlier batches have
    completed; `waiters` are the later batches that wait for it. The value of `finished` is None,
    not the batch: in a reference cycle, a batch and its kernel would never be deleted.
    """

    why: str = ""
    tensors: frozenset[str] = frozenset()
    order: StreamOrder = StreamOrder.COMPUTE
    left: int = 0
    waits_for: int = 0
    waiters: "list[Batch]" = field(default_factory=list["Batch"])
    finished: Completion[None] = field(default_factory=Completion[None])


class Streams:
    """The batches of a rank that are not complete, by stream, in the order of submission."""

    def __init__(self) -> None:
        self._open: dict[int, Batch] = {}
        self._compute: dict[int, Batch] = {}
        self._collectives: dict[int, Batch] = {}

    @property
    def earliest(self) -> Batch | None:
        """The batch that was submitted first."""
        return next(iter(self._open.values()), None)

    def submit(self, batch: Batch) -> bool:
        """Append a batch to its stream; returns whether it begins at once."""
        for earlier in self._conflicts(batch):
            earlier.waiters.append(batch)
            batch.waits_for += 1
        # Dictionaries keep the order of insertion, and completion removes from the middle.
        self._open[id(batch)] = self._stream(batch)[id(batch)] = batch
        return not batch.waits_for

    def complete(self, batch: Batch) -> list[Batch]:
        """Remove a batch that is complete; returns those that begin now, in order of submission."""
        del self._open[id(batch)], self._stream(batch)[id(batch)]
        for later in batch.waiters:
            later.waits_for -= 1
        return [later for later in batch.waiters if not later.waits_for]

    def _stream(self, batch: Batch) -> dict[int, Batch]:
        return self._compute if batch.order is StreamOrder.COMPUTE else self._collectives

    def _conflicts(self, batch: Batch) -> Iterator[Batch]:
        """Of each stream the latest batch that must complete before this one begins."""
        compute = reversed(self._compute.values())
        collectives = reversed(self._collectives.values())
        if batch.order is StreamOrder.COMPUTE:
            collectives = (
                each
                for each in collectives
                if each.order is StreamOrder.BARRIER or each.tensors & batch.tensors
            )
        for candidates in (compute, collectives):
            latest = next(candidates, None)
            if latest is not None:
                yield latest
