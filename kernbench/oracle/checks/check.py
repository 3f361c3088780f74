"""A check: one number of the simulator beside the value that a formula or a reference gives."""

from dataclasses import dataclass
from enum import Enum

GROUPS = {
    "a": "uncontended transfers: the closed form, to the picosecond",
    "b": "saturation: n / (T0 + n/B)",
    "c": "sharing of a link, of a destination, of an HBM slice",
    "e": "routes with credits: a packet alone, the loop of credits",
    "f": "conservation in a whole run",
    "h": "HBM: pseudo channels, banks, and independence of the mesh",
    "i": "IPCQ: credits and rates; all-reduce: time, bytes on links, integer sums",
    "j": "matrix products: bounds, steps, padding",
    "l": "launches and copies on streams: the closed form, to the picosecond",
    "m": "a send and a receive between two SIPs: the closed form, to the picosecond",
    "n": "equal times of equal parts",
    "p": "parts with values of their own (overrides): accesses and engines, to the picosecond",
    "r": "links between SIPs in both flow controls",
    "v": "the vector engine: by function, type, size and bound, and chains of operations",
}
"""The groups of checks, by the first letter of their ids."""


class Relation(Enum):
    """Comparison of a measured value with the expected value."""

    EQUAL = "="
    AT_MOST = "<="


@dataclass(frozen=True)
class Check:
    """A comparison: its subject, its formula or reference, and the two numbers in `unit`.

    `tolerance` is a share of the expected value, 0 for exact. With `Relation.AT_MOST` the
    expected value is an upper bound.
    """

    id: str
    text: str
    formula: str
    expected: int | float
    measured: int | float
    unit: str
    tolerance: float = 0.0
    relation: Relation = Relation.EQUAL

    @property
    def deviation(self) -> float:
        """(measured - expected) / expected; the difference itself if 0 is expected."""
        difference = self.measured - self.expected
        return difference / self.expected if self.expected else difference

    @property
    def passed(self) -> bool:
        """Whether the deviation is within the tolerance; below an upper bound it always is.

        Never for nan, which stands for a missing result: all comparisons with it are false.
        """
        bounded = self.relation is Relation.AT_MOST
        return (self.deviation if bounded else abs(self.deviation)) <= self.tolerance

    @property
    def verdict(self) -> str:
        """`ok` or `MISS`."""
        return "ok" if self.passed else "MISS"
