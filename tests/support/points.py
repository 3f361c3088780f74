"""Points that need no simulator, and functions that measure them; point processes import them."""

import os
import signal
from dataclasses import dataclass
from pathlib import Path

from msgspec import Struct

from kernbench.points.driver import PointMeasurement
from runtime.core.wallclock import sleep_s


@dataclass(frozen=True)
class NumberPoint:
    """A number, and a folder for what a point leaves behind."""

    number: int
    folder: str = ""
    cost: int = 1

    def __str__(self) -> str:
        return f"number {self.number}"


class NumberRow(Struct, frozen=True):
    """The square of the number, and a float that decimal digits do not represent."""

    square: int
    third: float


def squared(point: NumberPoint) -> NumberRow:
    return NumberRow(point.number**2, point.number / 3)


def squared_with_a_word(point: NumberPoint) -> NumberRow:
    print("a word of", point.number, flush=True)
    return squared(point)


def squared_after_two_deaths(point: NumberPoint) -> NumberRow:
    """The process of number 3 kills itself twice."""
    if point.number == 3:
        deaths = [Path(point.folder, f"death{each}") for each in range(2)]
        for death in deaths:
            if not death.exists():
                death.touch()
                os.kill(os.getpid(), signal.SIGKILL)
    return squared(point)


def deadly(point: NumberPoint) -> NumberRow:
    """The process of number 3 always kills itself."""
    if point.number == 3:
        os.kill(os.getpid(), signal.SIGSEGV)
    return squared(point)


def raising(point: NumberPoint) -> NumberRow:
    """Number 3 is an error."""
    if point.number == 3:
        raise ValueError("three is too many")
    return squared(point)


def hungry(point: NumberPoint) -> NumberRow:
    """Number 3 needs a gibibyte."""
    if point.number == 3:
        bytearray(1 << 30)
    return squared(point)


def slow(point: NumberPoint) -> NumberRow:
    """Number 3 takes a minute."""
    if point.number == 3:
        sleep_s(60)
    return squared(point)


def naming_its_process(point: NumberPoint) -> NumberRow:
    """Writes the process id into the folder, then takes a minute, number 0 excepted."""
    Path(point.folder, f"{point.number}.new").write_text(str(os.getpid()))
    Path(point.folder, f"{point.number}.new").rename(Path(point.folder, f"{point.number}.pid"))
    if point.number:
        sleep_s(60)
    return squared(point)


def measurement(measure=squared) -> PointMeasurement[NumberPoint, NumberRow]:
    return PointMeasurement(measure, NumberRow, "numbers", lambda row: f"square {row.square}")
