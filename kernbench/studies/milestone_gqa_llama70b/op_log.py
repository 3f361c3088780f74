"""The panels of the study, and what is read from an op log: counts, and time by engine."""

from collections import Counter
from collections.abc import Iterable
from enum import StrEnum

import numpy as np
from msgspec import Struct
from msgspec.structs import astuple

from kernbench.explain.why.intervals import by_priority
from runtime.core.trace import Operand, OpRecord


class AttentionPanel(StrEnum):
    """A panel, by the name it has in the results file."""

    SINGLE_USER_PREFILL = "single_user_prefill"
    SINGLE_USER_DECODE = "single_user_decode"
    MULTI_USER_PREFILL = "multi_user_prefill"
    MULTI_USER_DECODE = "multi_user_decode"

    @property
    def is_decode(self) -> bool:
        """Whether one query attends to many keys; else there is a query for every key."""
        return self in {AttentionPanel.SINGLE_USER_DECODE, AttentionPanel.MULTI_USER_DECODE}

    @property
    def is_single_user(self) -> bool:
        """Whether one user has all ranks of the panel."""
        return self in {AttentionPanel.SINGLE_USER_PREFILL, AttentionPanel.SINGLE_USER_DECODE}


_Block = tuple[int, int, int, int]
"""SIP, cube and PE, and the address in TCM at which a block begins."""


class OpLogSummary(Struct, frozen=True, forbid_unknown_fields=True):
    """Numbers of products, of messages between PEs, and of requests of kernels to memory."""

    gemm_count: int
    ipcq_send_count: int
    ipcq_recv_count: int
    dma_read_count: int
    dma_write_count: int


class TimeParts(Struct, frozen=True, forbid_unknown_fields=True):
    """The time of the kernel, in picoseconds and as a mean over all PEs.

    Each moment counts for the first of these that is true of a PE: its GEMM engine works, its
    vector engine works, a load or store is in flight, a message to or from another PE is in flight.
    `other_ps` is the rest of its kernel, `idle_ps` the time after it until the last kernel ends.
    """

    gemm_ps: float
    vector_ps: float
    memory_ps: float
    message_ps: float
    other_ps: float
    idle_ps: float

    @property
    def total_ps(self) -> float:
        """The sum of all parts."""
        return sum(astuple(self))


class OpLogCounts:
    """Counts an op log that arrives in parts.

    A product is counted if its result is a value in TCM from which the vector engine reads. The log
    has a record of every tile that is stored from an accumulator: the first tile of a result lies
    where an operation of the vector engine has the start of its operand, the others lie inside the
    operand.
    """

    def __init__(self) -> None:
        self._requests = Counter[str]()
        self._stores = Counter[tuple[_Block, _Block]]()
        self._operands, self._accumulators = set[_Block](), set[_Block]()

    def add(self, sip: int, records: Iterable[OpRecord]) -> None:
        """Count further records of a SIP."""
        for record in records:
            pe = sip, record.cube, record.pe
            match record.engine, record.name:
                case "pe_dma", name:
                    self._requests[name] += 1
                case "pe_gemm", _:
                    self._accumulators.add((*pe, record.address))
                case "pe_fetch_store", "store":
                    [source] = _addresses(record)
                    self._stores[(*pe, record.address), (*pe, source)] += 1
                case "pe_math", _:
                    self._operands.update((*pe, address) for address in _addresses(record))
                case _:
                    pass

    def summary(self, times: int = 1) -> OpLogSummary:
        """The counts of all records, of SIPs of which `times` do the same."""
        return OpLogSummary(
            gemm_count=times
            * sum(
                count
                for (target, source), count in self._stores.items()
                if target in self._operands and source in self._accumulators
            ),
            ipcq_send_count=times * self._requests["ipcq_send"],
            ipcq_recv_count=times * self._requests["ipcq_recv"],
            dma_read_count=times * (self._requests["load"] + self._requests["gather"]),
            dma_write_count=times * self._requests["store"],
        )


def _addresses(record: OpRecord) -> list[int]:
    """Start addresses of the operands of an operation."""
    return [operand.address for operand in record.inputs if isinstance(operand, Operand)]


Interval = tuple[int, int]
_Pe = tuple[int, int, int]
_PARTS = ("gemm", "vector", "memory", "message")
"""Kinds of work in the order of their priority."""
_ENGINES = {"pe_gemm": "gemm", "pe_math": "vector"}
_REQUESTS = {
    "load": "memory",
    "store": "memory",
    "gather": "memory",
    "ipcq_send": "message",
    "ipcq_recv": "message",
}


class WorkIntervals:
    """The times at which the engines of each PE work, from an op log that arrives in parts."""

    def __init__(self) -> None:
        self._works: dict[tuple[_Pe, str], list[Interval]] = {}
        self._kernels: dict[_Pe, Interval] = {}

    def add(self, sip: int, records: Iterable[OpRecord]) -> None:
        """Take further records of a SIP."""
        for record in records:
            pe, times = (sip, record.cube, record.pe), (record.start_ps, record.end_ps)
            part = _part(record)
            if part:
                _append(self._works.setdefault((pe, part), []), times)
            elif record.engine == "pe_cpu":
                self._kernels[pe] = times

    def parts(self) -> TimeParts:
        """The parts of the only launch, as a mean over all its PEs."""
        count = len(self._kernels)
        last_ps = max(end_ps for _, end_ps in self._kernels.values())
        idle_ps = sum(last_ps - end_ps for _, end_ps in self._kernels.values())
        by_pe = [self._lengths_ps(pe, *times) for pe, times in self._kernels.items()]
        means = (sum(each) / count for each in zip(*by_pe, strict=True))
        return TimeParts(*means, idle_ps=idle_ps / count)

    def _lengths_ps(self, pe: _Pe, start_ps: int, end_ps: int) -> list[int]:
        """The time of each part in the kernel of a PE, and the rest of it."""
        works = (self._works.get((pe, part), []) for part in _PARTS)
        # A store in flight may end after the kernel that has started it.
        from_start = (np.array(times, np.int64).reshape(-1, 2).T - start_ps for times in works)
        return by_priority([(begins, ends) for begins, ends in from_start], end_ps - start_ps)


def _append(union: list[Interval], times: Interval) -> None:
    """Add an interval to a list; it becomes one with the last of the list where they meet."""
    start_ps, end_ps = times
    if union and union[-1][0] <= start_ps <= union[-1][1]:
        union[-1] = union[-1][0], max(union[-1][1], end_ps)
    else:
        union.append(times)


def _part(record: OpRecord) -> str:
    if record.engine == "pe_dma":
        return _REQUESTS.get(record.name, "")
    return _ENGINES.get(record.engine, "")
