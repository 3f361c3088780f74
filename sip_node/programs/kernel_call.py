"""One call of a kernel on a PE: of the whole kernel, or of a program of its grid."""

from runtime.core.coordinates import PeCoordinates
from runtime.core.errors import KernelError, PageFaultError
from runtime.core.program_grid import GridPoint, program_text
from runtime.language.caller import call_kernel
from sip_node.chip.kernel import PeLaunch


def call_once(launch: PeLaunch, coordinates: PeCoordinates, program: GridPoint | None) -> None:
    """Run the kernel of a launch; what it raises has a note with the line of the launch."""
    try:
        call_kernel(launch.name, coordinates, launch.kernel, launch.arguments, program)
    except Exception as error:
        # The traceback begins in the kernel. The line of its launch, which for a collective is the
        # only line of the user, is not on this stack.
        launched = f"launched at {launch.line}"
        if not isinstance(error, KernelError | PageFaultError):
            of_grid = program_text(program)
            launched = f"in kernel {launch.name!r}{of_grid} on {coordinates}, {launched}"
        error.add_note(launched)
        raise
