"""Records a command of the host, when it has been answered."""

from runtime.core.run_tables import COMMANDS
from sip_node.chip.host.streams import Command
from sip_node.chip.run_recorder import RunRecorder

_PACK = COMMANDS.packer.pack


def record_command(recorder: RunRecorder, command: Command) -> None:
    """Append the row of a command to the table of its SIP."""
    text, requests = recorder.text, command.requests
    recorder.add(
        COMMANDS,
        _PACK(
            command.number,
            command.stream,
            text(type(requests[0]).__name__ if requests else ""),
            text(command.why),
            text(command.line),
            command.submitted_ps,
            command.departed_ps,
            command.released_ps,
            command.completed_ps,
            command.after,
        ),
    )
