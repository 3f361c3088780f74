"""The physical quantities of `topology.yaml`: types with a unit and a plausible range."""

from typing import Annotated, Literal

from msgspec import Meta

from runtime.core.config.section import Section
from runtime.model.schema.draws import Nearby, Scaled, among
from runtime.model.schema.meanings import KeyGroup

# The upper bounds are far above any hardware. They turn a wrong unit into an error instead of a
# run that does not end. Random machines draw from the range at the end of each type, or of a key.
Ns = Annotated[float, Meta(ge=0, le=1e9), Scaled(zero_to=50.0)]
DelayNs = Annotated[Ns, KeyGroup.DELAY]
Gbs = Annotated[float, Meta(ge=1e-3, le=1e6), Scaled(), KeyGroup.BANDWIDTH]
Ghz = Annotated[float, Meta(ge=1e-3, le=1e3), Scaled()]
Mm = Annotated[float, Meta(ge=0, le=1e4), Scaled(zero_to=5.0)]
LengthMm = Annotated[float, Meta(ge=1e-3, le=1e4), Scaled()]
Count = Annotated[int, Meta(ge=1, le=1 << 20), Scaled()]
GridSize = Annotated[int, Meta(ge=1, le=64), among(1, 2)]
Point = Annotated[tuple[Mm, Mm], Nearby()]
Side = Literal["N", "E", "S", "W"]


class Overhead(Section, frozen=True):
    """A component that only delays."""

    overhead_ns: DelayNs
