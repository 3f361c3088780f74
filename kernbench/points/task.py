"""Messages between the driver of many simulations and its workers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from msgspec import Struct

from runtime.core.code.imported_code import CodeFile
from runtime.core.errors import KernbenchError

LOCAL = "local"
"""The name of the executor of this machine's processes."""
ATTEMPTS = 3
"""A point whose worker dies is measured at most as often."""


class Point(Protocol):
    """One simulation: hashable, encodable as JSON by msgspec, and named by `str` in messages."""

    @property
    def cost(self) -> int:
        """Estimated work of the simulation, in a unit common to all points."""
        ...


@dataclass(frozen=True)
class Limits:
    """Limits of one point: wall time in seconds, bytes of data of a process; 0 is no limit."""

    seconds: float = 0.0
    memory_bytes: int = 0


class OtherCodeError(KernbenchError):
    """The worker has other code than the process that made the point. Fields: the difference."""


class PointFault(Struct, frozen=True, forbid_unknown_fields=True):
    """A point that has no row: its name, and the reason."""

    point: str
    reason: str


@dataclass(frozen=True)
class PointCode:
    """The code of a point: the hash of kernbench, the user's modules, and where modules are found.

    `user` has the files by module, `paths` is the import path of the process that made the point.
    """

    own: str
    user: Mapping[str, CodeFile] = field(default_factory=dict[str, CodeFile])
    paths: tuple[str, ...] = ()


@dataclass(frozen=True)
class PointTask:
    """A point on its way to a worker.

    `payload` is the pickled pair of the function and the point. A worker passes it to its point
    process unread: only that process imports the function.
    """

    payload: bytes = field(repr=False)
    limits: Limits
    code: PointCode = field(repr=False)


class PointResult(Struct, array_like=True, frozen=True):
    """The outcome of a task on `host`.

    - `row`: `content` is the row as MessagePack;
    - `fault`: the function has raised an exception or exceeded a limit, and would do so again;
      `text` is the reason, `detail` a traceback;
    - `lost`: the process has died, for the reason `text`;
    - `refused`: the worker has other code, or cannot import it.

    `output` is what the point has printed.
    """

    kind: Literal["row", "fault", "lost", "refused"]
    host: str = ""
    content: bytes = b""
    text: str = ""
    detail: str = ""
    output: str = ""
