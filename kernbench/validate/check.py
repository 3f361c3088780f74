"""A check: one number of the model beside what a formula or a reference says it must be."""

from dataclasses import dataclass
from enum import Enum

GROUPS = {
    "a": "uncontended paths: the closed form, to the picosecond",
    "b": "saturation: n / (T0 + n/B)",
    "c": "sharing of a link, a sink and a slice",
    "d": "one link as an M/D/1 queue",
    "e": "the routers of a cube as a 4x4 mesh, against BookSim 2",
    "f": "conservation on a real run",
    "g": "metamorphic: what must not change a result, or must halve it",
    "h": "HBM: channels, and independence of the mesh",
    "i": "IPCQ: credits and rates; all-reduce: time, bytes on links, integer sums",
    "j": "matrix products: bounds, pipeline, padding, a systolic array against SCALE-Sim",
    "k": "numerics of the kernel language, and that data take no time",
}
"""The groups of checks, by the first letter of their ids."""


class Bound(Enum):
    """How a measured value is compared with what is expected."""

    EQUAL = "="
    AT_MOST = "<="


@dataclass(frozen=True)
class Check:
    """What is said, by which formula or reference, and the two numbers in `unit`.

    `tolerance` is a share of the expected value, 0 for exact. With `Bound.AT_MOST` the expected value is an upper bound.
    """

    id: str
    says: str
    formula: str
    expected: float
    measured: float
    tolerance: float
    unit: str
    bound: Bound = Bound.EQUAL

    @property
    def deviation(self) -> float:
        """(measured - expected) / expected; the difference itself where 0 is expected."""
        difference = self.measured - self.expected
        return difference / self.expected if self.expected else difference

    @property
    def passed(self) -> bool:
        """Whether the deviation is within the tolerance; of an upper bound, only an excess counts."""
        deviation = self.deviation if self.bound is Bound.AT_MOST else abs(self.deviation)
        return deviation <= self.tolerance

    @property
    def verdict(self) -> str:
        """`ok` or `MISS`."""
        return "ok" if self.passed else "MISS"
