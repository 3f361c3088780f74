"""The work of each kernel: floating-point operations and bytes of HBM, from the records of a run.

A product of (m, k) and (k, n) is 2 m k n operations, an operation of the vector engine one for each
element of its first operand. Bytes of HBM are those that the DMA engines of the kernel's PEs read
and write there. An operation belongs to the kernel whose step has requested it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import prod
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct

from kernbench.explain.records import RecordedRun
from kernbench.explain.records.columns import Numbers
from kernbench.explain.records.directory import require_regular
from kernbench.explain.records.issuing_steps import issuing_steps
from runtime.core.run_tables import NONE, OPS, PROGRAMS, STEPS

OP_LOG = "oplog.jsonl"
_HBM_BIT = 37
"""The bit of a physical address that is set in HBM, see `runtime.model.addresses`."""


class _Shaped(Struct, frozen=True, gc=False):
    shape: tuple[int, ...] = ()


class _ShapedOp(Struct, frozen=True, gc=False):
    """The part of a line of the op log that counts operations."""

    sip: int
    index: int
    engine: str
    shape: tuple[int, ...]
    inputs: tuple[_Shaped | float, ...]


@dataclass
class KernelWork:
    """The sums over all programs of a kernel."""

    kernel: str
    programs: int = 0
    time_ps: int = 0
    flops: int = 0
    hbm_bytes: int = 0
    pes: set[tuple[int, int, int]] = field(default_factory=set[tuple[int, int, int]])

    @property
    def intensity(self) -> float:
        """Operations for each byte of HBM; 0 if there are no bytes."""
        return self.flops / self.hbm_bytes if self.hbm_bytes else 0.0

    @property
    def gflops(self) -> float:
        """Operations in a nanosecond, for one PE."""
        return self.flops * 1000 / self.time_ps if self.time_ps else 0.0


def kernel_work(records: RecordedRun) -> list[KernelWork]:
    """The work of each kernel, the longest first."""
    by_kernel: dict[str, KernelWork] = {}
    flops = _flops(records)
    for sip in records.sips:
        _add_sip(records, sip, flops[sip], by_kernel)
    return sorted(by_kernel.values(), key=lambda work: (-work.time_ps, work.kernel))


def _add_sip(
    records: RecordedRun, sip: int, flops: Numbers, by_kernel: dict[str, KernelWork]
) -> None:
    programs, ops, steps = (records.table(table, sip) for table in (PROGRAMS, OPS, STEPS))
    names = programs.text("kernel")
    launched = np.flatnonzero(programs["pe"] != NONE)
    for row in launched[np.argsort(programs["begin_ps"][launched], kind="stable")].tolist():
        work = by_kernel.setdefault(names[row], KernelWork(names[row]))
        work.programs += 1
        work.time_ps += int(programs["end_ps"][row] - programs["begin_ps"][row])
        work.pes.add((sip, int(programs["cube"][row]), int(programs["pe"][row])))
    step_of_op = issuing_steps(ops, steps)
    requested = step_of_op != NONE
    row_of_program = np.zeros(int(programs["program"].max(initial=0)) + 1, np.int64)
    row_of_program[programs["program"]] = np.arange(len(programs))
    program_of_op = row_of_program[steps["program"][step_of_op[requested]]]
    hbm = np.where(ops.text("engine").equal("pe_dma"), _hbm_bytes(ops), 0)[requested]
    own_flops = flops[requested]
    for code in np.unique(names.codes[launched]).tolist():
        own = names.codes[program_of_op] == code
        work = by_kernel[names.values[code]]
        work.hbm_bytes += int(hbm[own].sum())
        work.flops += int(own_flops[own].sum())


def _hbm_bytes(ops: Any) -> Any:
    """The bytes of each operation that are read from HBM or written to it."""
    ends = sum((ops[name] >> _HBM_BIT) & 1 for name in ("address", "read_address"))
    return ops["nbytes"] * ends


def _flops(records: RecordedRun) -> list[Numbers]:
    """The floating-point operations of every record of the op log, for each SIP."""
    flops = [np.zeros(len(records.table(OPS, sip)), np.int64) for sip in records.sips]
    for line in _lines(records):
        # A run that failed may have lines without a row.
        if line.engine in ("pe_gemm", "pe_math") and line.index < len(flops[line.sip]):
            flops[line.sip][line.index] = _count(line)
    return flops


def _lines(records: RecordedRun) -> Iterator[_ShapedOp]:
    path = records.directory / OP_LOG
    if not path.exists():
        return
    require_regular(path)
    decode = msgspec.json.Decoder(_ShapedOp).decode
    with path.open("rb") as file:
        for line in file:
            # Most lines are of other engines, and need no decoding.
            if b'"pe_gemm"' in line or b'"pe_math"' in line:
                yield decode(line)


def _count(line: _ShapedOp) -> int:
    shapes = [each.shape for each in line.inputs if isinstance(each, _Shaped)]
    first = shapes[0] if shapes else line.shape
    if line.engine == "pe_gemm":
        return 2 * prod(line.shape) * (first[-1] if first else 1)
    return prod(first)
