"""The parts into which the time of a rank is divided, and the part of each step and operation.

Each instant of a rank belongs to one part, the first of the list that applies to any of its PEs:
this is the temporal breakdown of Holistic Trace Analysis, with launches as a part of their own.
What is overlapped by computation is therefore counted as computation, and communication counts as
far as it is exposed.
"""

from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernbench.explain.records import Columns, Texts
from runtime.core.run_tables import NONE, Cause

Codes = NDArray[np.int8]


class TimePart(IntEnum):
    """A part of the time of a rank, by descending priority."""

    COMPUTE = 0
    MEMORY = 1
    COMMUNICATION = 2
    LAUNCH = 3
    IDLE = 4

    @property
    def title(self) -> str:
        """The name in reports."""
        return _TITLES[self]


_TITLES = {
    TimePart.COMPUTE: "compute",
    TimePart.MEMORY: "memory stall",
    TimePart.COMMUNICATION: "exposed communication",
    TimePart.LAUNCH: "launch",
    TimePart.IDLE: "idle",
}
COMPUTE_ENGINES = ("pe_gemm", "pe_math", "pe_fetch_store")
"""Engines whose operations are computation; a fetch and a store move operands to registers."""
HOST_KINDS = ("MemoryWriteMsg", "MemoryReadMsg", "PeDmaMsg")
"""Commands that move data between the host and a memory."""
_COMMUNICATION = ("send", "recv", "release", "barrier")
_MEMORY = ("load", "store", "gather", "copy", "atomic")
_OF_CAUSE: dict[str, TimePart] = {
    Cause.OPERAND: TimePart.MEMORY,
    Cause.MEMORY: TimePart.MEMORY,
    Cause.CHANNEL: TimePart.MEMORY,
    Cause.LINK: TimePart.MEMORY,
    Cause.SLOT: TimePart.COMMUNICATION,
    Cause.CREDIT: TimePart.COMMUNICATION,
    Cause.PEER: TimePart.COMMUNICATION,
    Cause.ENGINE: TimePart.COMPUTE,
    Cause.LAUNCH: TimePart.LAUNCH,
    Cause.COMMAND: TimePart.LAUNCH,
}
_UNDECIDED = -1


def part_of_operation(operation: str) -> int:
    """The part of a step that calls `operation`; -1 for a wait, whose part depends on its cause."""
    first = operation.partition(" ")[0]
    if first == "wait":
        return _UNDECIDED
    name = first.removesuffix("_async")
    if name in _COMMUNICATION:
        return TimePart.COMMUNICATION
    if name in _MEMORY:
        return TimePart.MEMORY
    return TimePart.LAUNCH if name in ("launch", "program") else TimePart.COMPUTE


def part_of_engine(engine: str, name: str) -> TimePart:
    """The part of an operation of an engine."""
    if engine in COMPUTE_ENGINES:
        return TimePart.COMPUTE
    if name.startswith("ipcq") or engine.startswith(("pe_ipcq", "ucie")):
        return TimePart.COMMUNICATION
    if engine in ("pe_dma", "hbm_ctrl") or name in HOST_KINDS:
        return TimePart.MEMORY
    return TimePart.LAUNCH


def parts_of_steps(steps: Columns, ops: Columns) -> Codes:
    """The part of each step of a kernel."""
    operations, causes = steps.text("operation"), steps.text("cause")
    parts = operations.mapped([part_of_operation(each) for each in operations.values], np.int8)
    undecided = parts == _UNDECIDED
    if undecided.any():
        by_cause = [_OF_CAUSE.get(each, _UNDECIDED) for each in causes.values]
        parts = np.where(undecided, causes.mapped(by_cause, np.int8), parts)
        undecided = parts == _UNDECIDED
        parts[undecided] = _parts_of_releases(steps["released_by"][undecided], ops)
    return parts


def waits_for_memory(causes: Texts) -> NDArray[np.bool_]:
    """The steps that waited for data of a memory."""
    return causes.matching(lambda cause: _OF_CAUSE.get(cause) is TimePart.MEMORY)


def _parts_of_releases(released_by: NDArray[Any], ops: Columns) -> Codes:
    """The part of waits whose cause is not recorded: that of the operation that ended them."""
    engines, names = ops.text("engine"), ops.text("name")
    parts = np.full(len(released_by), TimePart.COMPUTE, np.int8)
    for row, op in enumerate(released_by):
        if op != NONE:
            parts[row] = part_of_engine(engines[op], names[op])
    return parts
