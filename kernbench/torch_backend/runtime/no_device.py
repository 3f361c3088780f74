"""The errors of a process that uses the device `ahbm` and has none: in the reduced mode, and in a
process that a rank has started.
"""

from collections.abc import Callable
from typing import Any, NoReturn

REMEDY = (
    "Install a C++ compiler (Debian and Ubuntu: apt install g++; Fedora: dnf install gcc-c++; "
    "macOS: xcode-select --install), or name it in CXX; then run make setup-torch"
)
_OF_HOST = "Without it, process groups with the backend 'ahbm' take tensors of the device 'cpu'."


def note(reason: str) -> str:
    """The line that announces the reduced mode."""
    return (
        f"kernbench: reduced mode: no tensors of the device 'ahbm', because {reason}; process "
        "groups 'ahbm' take tensors of 'cpu', whose operators take no simulated time. " + REMEDY
    )


class NoDeviceError(NotImplementedError):
    """A use of the device where there is none: the call, why there is none, and what to do."""

    def __init__(self, call: str, reason: str, remedy: str) -> None:
        super().__init__(call, reason, remedy)

    def __str__(self) -> str:
        call, reason, remedy = self.args
        return f"{call}: there are no tensors of the device 'ahbm' in this {reason}. {remedy}"


class NoDevice:
    """Why the device is not there. Module state, as PyTorch's own table of devices is."""

    reason = remedy = ""

    @classmethod
    def in_run(cls, lacking: str) -> None:
        """The device is not there in the run."""
        cls.reason, cls.remedy = f"run, because {lacking}", f"{_OF_HOST} {REMEDY}"

    @classmethod
    def in_process(cls, reason: str, remedy: str) -> None:
        """The device is not there in this process."""
        cls.reason, cls.remedy = f"process, {reason}", remedy

    @classmethod
    def error(cls, call: str) -> NoDeviceError:
        """The error for a call."""
        return NoDeviceError(call, cls.reason, cls.remedy)

    @classmethod
    def refusing(cls, call: str) -> Callable[..., NoReturn]:
        """A function that raises the error for a call."""

        def refuse(*_: Any, **__: Any) -> NoReturn:
            raise cls.error(call)

        return refuse
