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
from dataclasses import dataclass, field
from enum import IntEnum, auto
from typing import TYPE_CHECKING

from runtime.core.compiled.choice import IS_COMPILED
from runtime.core.dtypes import DType
from runtime.core.trace import Operand
from sip_node.chip.completion import Completion
from sip_node.programs.kept_slots import NOT_KEPT
from sip_node.programs.slot_targets import SlotTargets


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


@dataclass(eq=False)
class ReferenceReceive:
    """One receive of elements of `dtype` into `targets`, physical blocks, from source line `line`.

    `direction` is None for any; once a message has matched, `source` is where it comes from and
    `parts` are its slots that are still to come. `in_tcm` is true for targets in the
    PE's own TCM. With `in_place` the message may stay in its slots, from the physical address
    `kept` on; -1 if it was copied. `done` completes with the packed bytes.
    """

    direction: str | None
    dtype: DType
    targets: Sequence[Operand]
    line: str
    in_tcm: bool
    in_place: bool = False
    kept: int = NOT_KEPT
    state: ReceiveState = ReceiveState.POSTED
    source: str = ""
    parts: deque[SlotTargets] = field(default_factory=deque)
    received: list[bytes] = field(default_factory=list)
    done: Completion[bytes] = field(default_factory=Completion)

    def enter(self, state: ReceiveState) -> None:
        """Change the state, to one that the table allows."""
        assert state in _FOLLOWING.get(self.state, ()), (
            f"a receive goes from {self.state!r} to {state!r}"
        )
        self.state = state


if TYPE_CHECKING or not IS_COMPILED:
    Receive = ReferenceReceive
else:
    from sip_node.compiled.slot_receives import ReceivedMessage

    class Receive(ReceivedMessage):
        """The twin of the reference, with its state."""

        @property
        def state(self) -> ReceiveState:
            """See the reference."""
            return ReceiveState(self.step)

        @state.setter
        def state(self, state: ReceiveState) -> None:
            self.step = state
