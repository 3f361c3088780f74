"""The physical quantities of `topology.yaml`: types with a unit and a plausible range."""

from typing import Annotated, Literal

from msgspec import Meta

from runtime.core.section import Section

# The upper bounds are far above any hardware. They turn a wrong unit into an error instead of a
# run that does not end.
Ns = Annotated[float, Meta(ge=0, le=1e9)]
Gbs = Annotated[float, Meta(ge=1e-3, le=1e6)]
Ghz = Annotated[float, Meta(ge=1e-3, le=1e3)]
Mm = Annotated[float, Meta(ge=0, le=1e4)]
LengthMm = Annotated[float, Meta(ge=1e-3, le=1e4)]
Count = Annotated[int, Meta(ge=1, le=1 << 20)]
GridSize = Annotated[int, Meta(ge=1, le=64)]
Point = tuple[Mm, Mm]
Side = Literal["N", "E", "S", "W"]


class Overhead(Section, frozen=True):
    """A component that only delays."""

    overhead_ns: Ns
