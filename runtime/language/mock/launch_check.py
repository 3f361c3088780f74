"""The check of a launch of the mock runtime, which a package above this one provides.

Its PEs record the calls of the kernel, and the check of a run replays them.
"""

from collections.abc import Callable, Sequence
from importlib.metadata import entry_points
from typing import Protocol, Unpack, cast

from runtime.core.coordinates import PeCoordinates
from runtime.language.mock.memory import MappedArray
from runtime.language.mock.pe import MockPe, PeOptions

_GROUP, _NAME = "kernbench.mock", "check"
"""The entry point of the check."""


class LaunchCheck(Protocol):
    """The check of one launch."""

    def pe(
        self, coordinates: PeCoordinates, programs: tuple[int, int], **options: Unpack[PeOptions]
    ) -> MockPe:
        """A PE of the launch, with the options of a `MockPe`."""
        ...

    def check(self) -> None:
        """`FindingsError` if the kernel has races, or uses undefined values; all PEs have run."""
        ...


BeginCheck = Callable[[str, str, Sequence[MappedArray]], LaunchCheck]
"""Begins a check, with the name of the kernel, the line of the launch, and the arrays."""


def load_check() -> BeginCheck:
    """The check of launches that is installed."""
    points = entry_points(group=_GROUP, name=_NAME)
    if not points:
        raise TypeError(
            f"a launch with check=True needs the entry point {_NAME!r} in {_GROUP!r}, which this "
            "installation of kernbench lacks: install it again (make setup, or pip install)"
        )
    return cast(
        "Callable[[str, str, Sequence[MappedArray]], LaunchCheck]", next(iter(points)).load()
    )
