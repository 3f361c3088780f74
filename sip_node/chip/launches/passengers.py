"""The answers that are on their way to the host when a launch begins."""

from typing import NamedTuple

from sip_node.chip.fabric.packet import Kind, Packet
from sip_node.chip.host.commands import RequestDone
from sip_node.chip.launches.chip_state import ChipState

Stage = tuple[int, int, int]
"""The place of an answer: when its head is at a stage of its route, the stage, and when its tail is
there; times count from the begin of a launch.
"""


class Passenger(NamedTuple):
    """An answer in `packet`, with the times of its head and tail at a stage of its route."""

    time_ps: int
    step: int
    tail_ps: int
    packet: Packet

    def stage(self, begin_ps: int) -> Stage:
        """The place of the answer at the begin of a launch."""
        return self.time_ps - begin_ps, self.step, self.tail_ps - begin_ps


def passengers(state: ChipState) -> list[Passenger] | None:
    """All that is to come on a chip, if it is answers that no one waits for; None for anything
    else.
    """
    pending = state.engine.pending(state.fabric.actor)
    if pending is None:
        return None
    found = [Passenger(*each) for each in pending]
    host = state.chip.host
    for each in found:
        transfer = each.packet.transfer
        if (
            transfer.kind is not Kind.CONTROL
            or not isinstance(transfer.body, RequestDone)
            # The program would go on, and might submit a command.
            or host.is_awaited(transfer.tag)
        ):
            return None
    return found
