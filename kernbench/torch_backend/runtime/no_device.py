"""The errors of a program that uses the device `ahbm` in the reduced mode."""

from collections.abc import Callable
from typing import Any, NoReturn

REMEDY = (
    "Install a C++ compiler (Debian and Ubuntu: apt install g++; Fedora: dnf install gcc-c++; "
    "macOS: xcode-select --install), or name it in CXX; then run make setup-torch"
)


def note(reason: str) -> str:
    """The line that announces the reduced mode."""
    return (
        f"kernbench: reduced mode: no tensors of the device 'ahbm', because {reason}; process "
        "groups 'ahbm' take tensors of 'cpu', whose operators take no simulated time. " + REMEDY
    )


class NoDeviceError(NotImplementedError):
    """A use of the device without the C++ part: the call, and what is lacking."""

    def __init__(self, call: str, reason: str) -> None:
        super().__init__(call, reason)

    def __str__(self) -> str:
        call, reason = self.args
        return (
            f"{call}: there are no tensors of the device 'ahbm' in this run, because {reason}. "
            "Without it, process groups with the backend 'ahbm' take tensors of the device 'cpu'. "
            f"{REMEDY}"
        )


class NoDevice:
    """Why the device is not there. Module state, as PyTorch's own table of devices is."""

    reason = ""

    @classmethod
    def error(cls, call: str) -> NoDeviceError:
        """The error for a call."""
        return NoDeviceError(call, cls.reason)

    @classmethod
    def refusing(cls, call: str) -> Callable[..., NoReturn]:
        """A function that raises the error for a call."""

        def refuse(*_: Any, **__: Any) -> NoReturn:
            raise cls.error(call)

        return refuse
