"""The four series of `make chaos`."""

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.chaos.damage import DAMAGES, read_damaged, recorded_run
from tests.chaos.disturbed_run import undisturbed
from tests.chaos.faults import drawn_fault
from tests.chaos.foreign_frames import KINDS, send_foreign_frames
from tests.chaos.limits import LIMITS, run_within
from tests.chaos.outcome import Outcome
from tests.chaos.signals import disturb

NAMES = ("signals", "frames", "limits", "damage")


@dataclass(frozen=True)
class Series:
    """`cases(number, folder)` runs case `number` in an empty folder; `size` is the usual count."""

    name: str
    size: int
    case: Callable[[int, Path], Outcome]

    def outcomes(self, numbers: range | list[int]) -> Iterator[tuple[int, Outcome]]:
        """Run the cases with these numbers."""
        for number in numbers:
            with tempfile.TemporaryDirectory(prefix="kb-") as folder:
                yield number, self.case(number, Path(folder))


def all_series(seed: int, folder: Path) -> dict[str, Series]:
    """The series by name; equal seeds give equal cases. What they share is in `folder`."""
    measured = cache(undisturbed)
    undamaged = cache(lambda: recorded_run(folder))
    every = (
        Series(
            "signals",
            240,
            lambda number, folder: disturb(drawn_fault(seed, number), folder, measured),
        ),
        Series(
            "frames",
            len(KINDS),
            lambda number, folder: send_foreign_frames(seed, number, folder, measured),
        ),
        Series(
            "limits",
            len(LIMITS),
            lambda number, folder: run_within(LIMITS[number % len(LIMITS)], folder, measured),
        ),
        Series(
            "damage",
            len(DAMAGES),
            lambda number, folder: read_damaged(seed, number, folder, undamaged),
        ),
    )
    return {each.name: each for each in every}
