"""Batches of requests, and which of them waits for which.

The batches of a rank form two chains: those IN_TURN, and the others, collectives as a rule. Each one waits for the one before
it in its chain. One of the second chain also waits for the latest IN_TURN, and so for everything before it. One IN_TURN also
waits for the latest of the second chain that it may not overtake, and so for all before that.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from runtime.core.requests import Handle, StreamOrder
from sip_node.chip.completion import Completion


@dataclass
class Batch(Handle):
    """Requests that run together. `left` of them have not completed; `awaited` batches must complete before it begins."""

    why: str = ""
    tensors: frozenset[str] = frozenset()
    order: StreamOrder = StreamOrder.COMPUTE
    left: int = 0
    awaited: int = 0
    following: "list[Batch]" = field(default_factory=list["Batch"])
    finished: "Completion[Batch]" = field(default_factory=Completion["Batch"])


class Batches:
    """The batches of a rank that are not complete."""

    def __init__(self) -> None:
        self._open: dict[int, Batch] = {}
        self._in_turn: dict[int, Batch] = {}
        self._others: dict[int, Batch] = {}

    @property
    def earliest(self) -> Batch | None:
        """The one that was submitted first."""
        return next(iter(self._open.values()), None)

    def add(self, batch: Batch) -> bool:
        """Submit a batch; says whether it begins at once."""
        for earlier in self._awaited_by(batch):
            earlier.following.append(batch)
            batch.awaited += 1
        self._open[id(batch)] = self._chain(batch)[id(batch)] = batch
        return not batch.awaited

    def complete(self, batch: Batch) -> list[Batch]:
        """Take out a batch that is complete; those that begin now, in the order of their submission."""
        del self._open[id(batch)], self._chain(batch)[id(batch)]
        for later in batch.following:
            later.awaited -= 1
        return [later for later in batch.following if not later.awaited]

    def _chain(self, batch: Batch) -> dict[int, Batch]:
        return self._in_turn if batch.order is StreamOrder.COMPUTE else self._others

    def _awaited_by(self, batch: Batch) -> Iterator[Batch]:
        in_turn, others = reversed(self._in_turn.values()), reversed(self._others.values())
        if batch.order is StreamOrder.COMPUTE:
            others = (
                each
                for each in others
                if each.order is StreamOrder.BARRIER or each.tensors & batch.tensors
            )
        for chain in (in_turn, others):
            latest = next(chain, None)
            if latest is not None:
                yield latest
