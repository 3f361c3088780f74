"""What a kernel did wrong, told with the kernel's name, its line and its PE."""

from dataclasses import dataclass

from runtime.core.coordinates import PeCoordinates
from runtime.core.errors import CollectiveMismatchError, KernelError, PageFaultError
from runtime.language.caller import kernel_line


@dataclass(frozen=True)
class KernelFaults:
    """The errors of one kernel on one PE. They name the line at work, which only its greenlet knows, or `line`.

    `call` is the collective call that the kernel is a part of, if any.
    """

    kernel: str
    place: PeCoordinates
    call: str = ""

    def error(self, problem: str, line: str = "") -> KernelError:
        """The kernel asks for what the hardware does not allow."""
        return KernelError(self.kernel, self.place, line or kernel_line(), problem)

    def other_call(self, sip: int, call: str) -> CollectiveMismatchError:
        """A slot has come from a rank that makes another call, or none."""
        own = self.call or f"kernel {self.kernel!r}, which is no collective"
        return CollectiveMismatchError(
            self.place.sip, own, sip, call or "a kernel that is no collective"
        )

    def page_fault(self, address: int, nbytes: int, tensor: str) -> PageFaultError:
        """The kernel touches bytes that are not mapped; `tensor` says what is next to them."""
        return PageFaultError(self.kernel, self.place, kernel_line(), address, nbytes, tensor)
