"""One receive of a kernel: its state, and which state may follow which.

A message is cut into slots of the ring's slot size. A receive reads one slot after the other, and
between two of them the PE_CPU issues a command, as it would for a loop over slots in the kernel:

    state          event                                     next state
    -------------  ----------------------------------------  -------------
    POSTED         a direction that it accepts has a full    READING
                   slot, and no other receive reads there
    READING        the slot is copied, and more follow       ISSUING
    READING        the last slot is copied                   COMPLETE
    ISSUING        command issued; the next slot is full     READING
    ISSUING        command issued; the next slot is empty    AWAITING_SLOT
    AWAITING_SLOT  the next slot arrives                     READING
    POSTED         in place, without a wrap: the first slot  KEEPING
    KEEPING        all slots have arrived                    COMPLETE
    POSTED, ISSUING, AWAITING_SLOT, KEEPING
                   the slot is not what the receive expects  FAILED
"""

from collections import deque
from collections.abc import Sequence
from enum import IntEnum, auto
from typing import Any

from runtime.core.dtypes import DType
from runtime.core.trace import Operand
from sip_node.chip.completion import Completion, Continuation
from sip_node.chip.pe.queue_table import QueueState, Slot
from sip_node.programs.kept_slots import NOT_KEPT, SlotTargets


# Integers, since the hash of another Enum is a function in Python.
class ReceiveState(IntEnum):
    """The state of one receive; the table above describes the transitions."""

    POSTED = auto()
    READING = auto()
    ISSUING = auto()
    AWAITING_SLOT = auto()
    COMPLETE = auto()
    FAILED = auto()
    KEEPING = auto()


_FOLLOWING: dict[int, set[ReceiveState]] = {
    ReceiveState.POSTED: {ReceiveState.READING, ReceiveState.KEEPING, ReceiveState.FAILED},
    ReceiveState.KEEPING: {ReceiveState.COMPLETE, ReceiveState.FAILED},
    ReceiveState.READING: {ReceiveState.ISSUING, ReceiveState.COMPLETE},
    ReceiveState.ISSUING: {
        ReceiveState.READING,
        ReceiveState.AWAITING_SLOT,
        ReceiveState.FAILED,
    },
    ReceiveState.AWAITING_SLOT: {ReceiveState.READING, ReceiveState.FAILED},
}


class ReceiveSteps:
    """What continues a receive: the receives of a kernel."""

    def command_issued(self, receive: "Receive") -> None:
        """The command for the next slot is issued."""
        raise NotImplementedError(type(self).__name__)

    def slot_copied(self, receive: "Receive", data: bytes) -> None:
        """The slot that was read is in its targets, which have these bytes."""
        raise NotImplementedError(type(self).__name__)


class Receive(Continuation):
    """One receive of elements of `dtype` into `targets`, physical blocks, from source line `line`.

    `direction` is None for any; once a message has matched, `source` is where it comes from,
    `queue` its queue, and `parts` are its slots that are still to come. `in_tcm` is true for
    targets in the PE's own TCM. With `in_place` the message may stay in its slots, from the
    physical address `kept` on; -1 if it was copied. `done` completes with the packed bytes.

    It continues at the end of each of its own copies and commands, by `steps`: the copy of `slot`,
    to several targets if it is `divided`.
    """

    def __init__(
        self,
        *,
        direction: str | None,
        dtype: DType,
        targets: Sequence[Operand],
        line: str,
        in_tcm: bool,
        in_place: bool = False,
    ) -> None:
        self.direction, self.dtype, self.targets = direction, dtype, targets
        self.line, self.in_tcm, self.in_place, self.kept = line, in_tcm, in_place, NOT_KEPT
        self.state, self.source, self.divided = ReceiveState.POSTED, "", False
        self.parts: deque[SlotTargets] = deque()
        self.received: list[bytes] = []
        self.done: Completion[bytes] = Completion()
        self.queue: QueueState | None = None
        self.slot: Slot | None = None
        self.steps: ReceiveSteps | None = None

    def enter(self, state: ReceiveState) -> None:
        """Change the state, to one that the table allows."""
        assert state in _FOLLOWING.get(self.state, ()), (
            f"a receive goes from {self.state!r} to {state!r}"
        )
        self.state = state

    def resume(self, done: Any) -> None:
        """The command for a slot is issued, or its copy has ended."""
        assert self.steps is not None
        if done is None:
            self.steps.command_issued(self)
        elif self.divided:
            self.steps.slot_copied(self, b"".join(done.value))
        else:
            self.steps.slot_copied(self, done.value)
