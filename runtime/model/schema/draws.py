"""The ranges from which random machines draw the keys of `topology.yaml`.

A range stands in the annotation of a key, beside the bounds of its values, or in the type of the
key. It is small: machines drawn from it are plausible and quick to simulate. The last range of an
annotation counts. A key with a `Literal` type needs none: it is drawn from its alternatives.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Scaled:
    """A draw from half of the value in the default file to twice it; from 0 to `zero_to` where
    that is 0 or null.
    """

    zero_to: float = 0.0

    def __str__(self) -> str:
        zero = f", 0 to {self.zero_to:g} where it is 0 or null" if self.zero_to else ""
        return f"half of the value to twice it{zero}"


@dataclass(frozen=True)
class Nearby:
    """A position, each of whose coordinates moves by at most `mm`, inside the cube."""

    mm: float = 1.0

    def __str__(self) -> str:
        return f"within {self.mm:g} mm of each coordinate"


@dataclass(frozen=True)
class Among:
    """One of a few values, with which machines stay small."""

    values: tuple[object, ...]

    def __str__(self) -> str:
        shown = ("null" if each is None else str(each).replace("'", "") for each in self.values)
        return f"one of {', '.join(shown)}"


@dataclass(frozen=True)
class Fixed:
    """Not drawn, for a reason."""

    reason: str

    def __str__(self) -> str:
        return f"not drawn: {self.reason}"


Draw = Scaled | Nearby | Among | Fixed


def among(*values: object) -> Among:
    """One of `values`; lists stand for sequences, as in the file."""
    return Among(values)
