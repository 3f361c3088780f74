"""Results of a study: a row for each simulation, its faults, and the content of the JSON file."""

from collections.abc import Iterator, Sequence
from typing import Generic, Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import astuple


class StudyRow(Protocol):
    """The result of one simulation."""

    @property
    def label(self) -> str:
        """Name of the row in the verdict."""
        ...

    @property
    def time_ps(self) -> int:
        """The simulated time, for the progress."""
        ...

    @property
    def faults(self) -> Sequence[str]:
        """A sentence for each check that failed."""
        ...


RowT = TypeVar("RowT", bound=StudyRow)


class StudyResults(Struct, Generic[RowT], frozen=True, forbid_unknown_fields=True):
    """The content of the results file: the rows, and the topology file they were measured on.

    `version` is that of the format; `topology` is the name of the file, `topology_hash` the hash of
    its content. A study whose file has more adds fields.
    """

    version: int
    topology: str
    topology_hash: str
    rows: tuple[RowT, ...]


class EngineBounds(Struct, frozen=True, forbid_unknown_fields=True):
    """Least times by one engine each, in picoseconds: the fields of a subclass, `engine_ps`."""

    @property
    def bound_ps(self) -> float:
        """The longest of all."""
        return max(map(float, astuple(self)))

    @property
    def binds(self) -> str:
        """The engine whose time is the bound."""
        engine = max(self.__struct_fields__, key=lambda name: getattr(self, name))
        return engine.removesuffix("_ps").replace("gemm", "GEMM")


def wrong_count(count: int | None) -> Iterator[str]:
    """A fault if elements of a result are wrong; None is a run without data."""
    if count:
        yield f"{count:,} elements are wrong"


def wrong_by(error: float | None, tolerance: float, what: str = "") -> Iterator[str]:
    """A fault if `error`, in the unit of `tolerance`, exceeds it; None is a run without data.

    `what` names the result, if the row has several.
    """
    # Not `error > tolerance`: a NaN in the result is a fault.
    if error is not None and not error <= tolerance:
        yield f"wrong by {error:.3g}{what and f' ({what})'}, {tolerance:g} are allowed"


def below_bound(time_ps: int, bound_ps: float, what: str = "") -> Iterator[str]:
    """A fault if a time is below its lower bound: an error in the model or in the bound.

    `what` names the time, if the row has several.
    """
    if time_ps < bound_ps:
        yield f"{what and f'{what}: '}{time_ps:,} ps are less than the bound of {bound_ps:,.0f} ps"


def sip_count(count: int) -> str:
    """`1 SIP`, `2 SIPs`."""
    return "1 SIP" if count == 1 else f"{count} SIPs"
