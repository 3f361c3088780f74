"""What a kernel did wrong, told with the kernel's name, its line and its PE."""

from dataclasses import dataclass

from runtime.errors import KernelError, PageFaultError
from runtime.language.caller import kernel_line
from runtime.places import Place


@dataclass(frozen=True)
class KernelFaults:
    """The errors of one kernel on one PE. They name the line at work, which only its greenlet knows, or `line`."""

    kernel: str
    place: Place

    def error(self, problem: str, line: str = "") -> KernelError:
        """The kernel asks for what the hardware does not allow."""
        return KernelError(self.kernel, self.place, line or kernel_line(), problem)

    def page_fault(self, address: int, nbytes: int, tensor: str) -> PageFaultError:
        """The kernel touches bytes that are not mapped; `tensor` says what is next to them."""
        return PageFaultError(self.kernel, self.place, kernel_line(), address, nbytes, tensor)
