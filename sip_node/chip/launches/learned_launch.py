"""A launch that is simulated, and recorded so that it may be repeated."""

from collections.abc import Hashable, Sequence

from sip_node.chip.fabric.packet import FabricTransfer
from sip_node.chip.host.commands import CommandDone
from sip_node.chip.launch_keys import BeginningLaunch, LaunchKey
from sip_node.chip.launches.chip_state import ChipState
from sip_node.chip.launches.launch_recording import LaunchRecording
from sip_node.chip.launches.launch_template import AnswerArrival, LaunchTemplate, PassengerStage
from sip_node.chip.launches.launch_values import LaunchValues
from sip_node.chip.launches.passengers import Passenger

MOST_OF_A_LAUNCH = 1 << 16
"""The records of a launch that is repeated with its values: of longer ones, these are the cost."""


class LearnedLaunch:
    """A launch that begins now on an idle chip, with `passengers`, and is recorded in `most_bytes`.

    `key` and `state` are what another launch has to have in common with it.
    """

    def __init__(
        self,
        chip: ChipState,
        begin: BeginningLaunch,
        key: LaunchKey,
        passengers: Sequence[Passenger],
        state: Hashable,
        most_bytes: int,
    ) -> None:
        self._chip, self.tag, self.launch, self.key = chip, begin.tag, begin.launch, key
        self.passengers, self.state = passengers, state
        self._recording = LaunchRecording(chip, begin.launch, key, most_bytes)
        self._scheduled, self._foreign = chip.engine.scheduled, self._of_others()
        self._functions = chip.context.launch_keys.functions(chip.context.sip)
        self._arrivals: list[AnswerArrival] = []
        self._done = CommandDone()

    @property
    def nbytes(self) -> int:
        """Bytes of memory, about."""
        return self._recording.nbytes

    def answered(self, transfer: FabricTransfer) -> None:
        """An answer has arrived at the host, which has not recorded it yet."""
        recording = self._recording
        for number, each in enumerate(self.passengers):
            if each.packet.transfer is transfer:
                after_ps = self._chip.engine.now_ps - recording.begin_ps
                self._arrivals.append(AnswerArrival(after_ps, recording.entered, number))

    def stop(self) -> None:
        """Record nothing more."""
        self._recording.stop()

    def end(self, done: CommandDone) -> bool:
        """The launch ends now; returns whether it can be repeated: nothing else was at work."""
        chip, begin_ps = self._chip, self._recording.begin_ps
        pending = chip.engine.pending(chip.fabric.actor)
        if pending is None or self._of_others() != self._foreign:
            return False
        functions = chip.context.launch_keys.functions(chip.context.sip)
        # Without numbers, the records of a function are those of its list.
        if any(self.key.numbers) and functions != self._functions:
            return False
        if chip.context.data and self._recording.entered > MOST_OF_A_LAUNCH:
            return False
        numbers = {id(each.packet): number for number, each in enumerate(self.passengers)}
        if any(id(packet) not in numbers for *_, packet in pending):
            return False
        stages = [
            PassengerStage(numbers[id(packet)], time_ps - begin_ps, step, tail_ps - begin_ps)
            for time_ps, step, tail_ps, packet in pending
        ]
        events = chip.engine.scheduled - self._scheduled + len(self.passengers) - len(pending)
        self._done = done
        return self._recording.leave(self._arrivals, stages, events)

    def template(self) -> LaunchTemplate:
        """The template that it is; raises `NotRepeated`.

        Made when the launch comes again, since many do not.
        """
        recording, chip = self._recording, self._chip
        values = None
        if chip.context.data:
            values = LaunchValues(recording.operations, chip.place_of)
        return recording.template(self._done, chip, values)

    def _of_others(self) -> tuple[int, ...]:
        """Counts that do not change while nothing but a launch is at work: commands of the host,
        messages of other SIPs, products that may be fast-forwarded.
        """
        chip, forward = self._chip.chip, self._chip.context.forward
        taken = 0 if forward is None else forward.taken
        return chip.host.streams.submitted, chip.boundary.sent, chip.boundary.received, taken
