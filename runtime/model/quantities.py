"""What numbers `topology.yaml` has: each with a unit and the range in which it makes sense."""

from typing import Annotated

from pydantic import Field

from runtime.core.config_file import Section

# The upper bounds are far above any hardware; they turn a slip of units into an error instead of an endless run.
Ns = Annotated[float, Field(ge=0, le=1e9)]
Gbs = Annotated[float, Field(ge=1e-3, le=1e6)]
Ghz = Annotated[float, Field(ge=1e-3, le=1e3)]
Mm = Annotated[float, Field(ge=0, le=1e4)]
LengthMm = Annotated[float, Field(ge=1e-3, le=1e4)]
Count = Annotated[int, Field(ge=1, le=1 << 20)]


class Overhead(Section):
    """A component that only delays what passes through it."""

    overhead_ns: Ns
