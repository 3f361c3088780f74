"""A call of a kernel, and its errors with the kernel's name, its PE and its source line."""

from msgspec import Struct

from runtime.core.coordinates import PeCoordinates
from runtime.core.errors import CollectiveMismatchError, KernelError, PageFaultError
from runtime.core.program_grid import GridPoint, program_text
from runtime.language.caller import LANGUAGE_ERRORS, call_kernel, kernel_line
from sip_node.chip.kernel import PeLaunch


def call_once(launch: PeLaunch, coordinates: PeCoordinates, program: GridPoint | None) -> None:
    """Run the kernel of a launch; what it raises has a note with the line of the launch."""
    try:
        call_kernel(launch.name, coordinates, launch.kernel, launch.arguments, program)
    except Exception as error:
        _note_launch(error, launch, coordinates, program)
        raise


def _note_launch(
    error: Exception, launch: PeLaunch, coordinates: PeCoordinates, program: GridPoint | None
) -> None:
    # The traceback begins in the kernel. The line of its launch, which for a collective is the only
    # line of the user, is not on this stack.
    launched = f"launched at {launch.line}"
    if not isinstance(error, KernelError | PageFaultError):
        of_grid = program_text(program)
        launched = f"in kernel {launch.name!r}{of_grid} on {coordinates}, {launched}"
    error.add_note(launched)


class KernelFaults(Struct):
    """Makes the errors of one kernel on one PE.

    The source line is that of a method, that of the command of a list, `line`, or the current one
    of the kernel: that is on the stack of the kernel's greenlet only, so without a line the methods
    must be called from there. `call` is the collective call that the kernel is part of, if any, and
    `program` the program of a grid that runs.
    """

    kernel: str
    coordinates: PeCoordinates
    call: str = ""
    program: GridPoint | None = None
    line: str = ""

    @property
    def writer(self) -> PeCoordinates | str:
        """The writer of a store to memory: a PE, or a program on it."""
        if self.program is None:
            return self.coordinates
        return f"{program_text(self.program).strip()} on {self.coordinates}"

    def error(self, problem: str, line: str = "") -> KernelError:
        """The kernel requests an operation that the hardware does not allow."""
        line = line or self.line or kernel_line()
        return KernelError(self.kernel, self.coordinates, line, problem, self.program)

    def other_call(self, sip: int, call: str) -> CollectiveMismatchError:
        """A slot arrived from a rank that is in another collective call, or in none."""
        own = self.call or f"kernel {self.kernel!r}, which is no collective"
        other = call or "a kernel that is no collective"
        return CollectiveMismatchError(self.coordinates.sip, own, sip, other)

    def page_fault(self, address: int, nbytes: int, tensor: str) -> PageFaultError:
        """The kernel accesses bytes that are not mapped; `tensor` describes the nearest tensor."""
        line = self.line or kernel_line()
        return PageFaultError(
            self.kernel, self.coordinates, line, address, nbytes, tensor, self.program
        )


def raised_by_command(launch: PeLaunch, faults: KernelFaults, error: Exception) -> Exception:
    """The error of a kernel whose command at the line of `faults` has raised: that which the
    function of the kernel would have raised.
    """
    raised = faults.error(str(error)) if isinstance(error, LANGUAGE_ERRORS) else error
    _note_launch(raised, launch, faults.coordinates, faults.program)
    return raised
