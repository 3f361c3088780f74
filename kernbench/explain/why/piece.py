"""A piece of the critical path: an interval, what took it, and the statement that caused it."""

from enum import StrEnum

from msgspec import Struct

from runtime.core.run_tables import NONE


class PieceKind(StrEnum):
    """The kind of a piece of the path."""

    COMPUTE = "compute"
    """An engine, or the program of the rank on its host, computes."""
    MEMORY = "memory"
    """Data between a memory and a PE, or the host."""
    COMMUNICATION = "communication"
    """A slot, a credit or a message of a barrier on its way."""
    QUEUE = "queue"
    """An operation waits for an engine, a channel or a link that others use."""
    ISSUE = "issue"
    """A PE issues a command of a kernel."""
    LAUNCH = "launch"
    """A command of the host on its way to the PEs, and the report of its end."""
    HOST = "host"
    """The driver of the host, and waits of the rank without a command."""
    JITTER = "jitter"
    """A host, or a packet to another SIP, is late by a random time."""
    UNEXPLAINED = "unexplained"
    """No record explains the interval."""


class PathPiece(Struct, frozen=True, gc=False):
    """An interval of the path.

    `component` is the engine, link or CPU whose time it is; `what` the operation there, `cause`
    what it waited for. `op`, `step` and `command` are rows of the tables of the SIP, -1 for none.
    """

    begin_ps: int
    end_ps: int
    kind: PieceKind
    component: str
    what: str
    sip: int
    cube: int = NONE
    pe: int = NONE
    cause: str = ""
    line: str = ""
    op: int = NONE
    step: int = NONE
    command: int = NONE

    @property
    def length_ps(self) -> int:
        """The time of the piece."""
        return self.end_ps - self.begin_ps
