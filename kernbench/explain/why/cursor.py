"""The places of the walk along the critical path, and what the walk shares."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from kernbench.explain.records import RunRecords
from kernbench.explain.why.index import SipIndex
from kernbench.explain.why.piece import PathPiece, PieceKind
from kernbench.explain.why.slots import OpOfSip, SlotJoins
from runtime.core.run_tables import NONE, OPS


class AtProgram(Struct, frozen=True, gc=False):
    """A program that has run until `time_ps`; what let it come there precedes."""

    sip: int
    program: int
    time_ps: int


class AtOp(Struct, frozen=True, gc=False):
    """The end of an operation; `step` is that which waits for it, if it is one of its PE."""

    op: OpOfSip
    step: int
    time_ps: int


class BeforeOp(Struct, frozen=True, gc=False):
    """The start of an operation, whose service is already part of the path."""

    op: OpOfSip
    step: int
    time_ps: int


class AtCommand(Struct, frozen=True, gc=False):
    """The begin of a command at the IO_CPU; `row` is that of its table."""

    sip: int
    row: int
    time_ps: int


Cursor = AtProgram | AtOp | BeforeOp | AtCommand


class RunIndex(Struct, frozen=True):
    """The tables of a run in the orders in which the walk searches them.

    `before` has what walks have found: for a place, and whether the walk leads through engines
    there, the place before it and the pieces between.
    """

    sips: Mapping[int, SipIndex]
    slots: SlotJoins
    before: dict[tuple[Cursor, bool], tuple[Cursor | None, tuple[PathPiece, ...]]] = {}

    @classmethod
    def of(cls, records: RunRecords) -> "RunIndex":
        """The index of a run; its orders are made when they are used."""
        sips = {sip: SipIndex(records, sip) for sip in records.sips}
        return cls(sips, SlotJoins(records.tables(OPS)))


class WalkContext(Struct):
    """The tables that the walk searches, and the pieces that it has found, the last one first."""

    index: RunIndex
    through_engines: bool = True
    pieces: list[PathPiece] = []

    @property
    def indices(self) -> Mapping[int, SipIndex]:
        """The tables of each SIP."""
        return self.index.sips

    @property
    def slots(self) -> SlotJoins:
        """The joins of the queues of all SIPs."""
        return self.index.slots

    def add(
        self, begin_ps: int, end_ps: int, kind: PieceKind, component: str, what: str, **rest: Any
    ) -> None:
        """Add the piece before those found so far; one without duration is left out."""
        if end_ps > begin_ps:
            self.pieces.append(
                PathPiece(begin_ps, end_ps, kind=kind, component=component, what=what, **rest)
            )

    def unexplained(self, sip: int, time_ps: int) -> Cursor | None:
        """No record leads back from here: go on at the last end of a step before, or end."""
        before_ps, program = self.indices[sip].last_step_end_before(time_ps)
        self.add(before_ps, time_ps, PieceKind.UNEXPLAINED, "unexplained", "no record", sip=sip)
        return None if program == NONE else AtProgram(sip, program, before_ps)


def component(cube: int, pe: int, engine: str) -> str:
    """The name of a component in a SIP: `cube3.pe0.pe_dma`, `cube3.m_cpu`, `io.io_cpu`."""
    if cube == NONE:
        return f"io.{engine}"
    return f"cube{cube}.{engine}" if pe == NONE else f"cube{cube}.pe{pe}.{engine}"
