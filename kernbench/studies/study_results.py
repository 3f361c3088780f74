"""Results of a study: a row for each simulation, and the content of its JSON file."""

from collections.abc import Sequence
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
