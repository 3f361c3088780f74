"""The work of each kernel: floating-point operations and bytes of HBM, from the records of a run.

A product of (m, k) and (k, n) is 2 m k n operations, an operation of the vector engine one for each
element of its first operand. Bytes of HBM are those that the DMA engines of the kernel's PEs read
and write there. An operation belongs to the kernel that its PE runs when it starts.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import prod
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct

from kernbench.run_records import RecordedRun
from runtime.core.run_tables import OPS, PROGRAMS

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
    found: dict[str, KernelWork] = {}
    flops = _flops(records)
    for sip in records.sips:
        _add_sip(records, sip, flops, found)
    return sorted(found.values(), key=lambda work: (-work.time_ps, work.kernel))


def _add_sip(
    records: RecordedRun, sip: int, flops: dict[tuple[int, int], int], found: dict[str, KernelWork]
) -> None:
    programs, ops = records.table(PROGRAMS, sip), records.table(OPS, sip)
    kernels, engines = programs.text("kernel"), ops.text("engine")
    by_pe: dict[tuple[int, int], list[int]] = {}
    for row in np.lexsort((programs["begin_ps"],)):
        place = int(programs["cube"][row]), int(programs["pe"][row])
        if place[1] < 0:
            continue
        by_pe.setdefault(place, []).append(int(row))
        work = found.setdefault(kernels[row], KernelWork(kernels[row]))
        work.programs += 1
        work.time_ps += int(programs["end_ps"][row] - programs["begin_ps"][row])
        work.pes.add((sip, *place))
    begins = {place: programs["begin_ps"][rows] for place, rows in by_pe.items()}
    hbm = _hbm_bytes(ops)
    counted = engines.matching(lambda engine: engine in ("pe_gemm", "pe_math", "pe_dma"))
    for row in np.flatnonzero(counted).tolist():
        place = int(ops["cube"][row]), int(ops["pe"][row])
        start_ps = ops["start_ps"][row]
        of_pe: Any = begins.get(place, np.zeros(0, np.int64))
        at = int(of_pe.searchsorted(start_ps, side="right")) - 1
        if at >= 0 and start_ps <= programs["end_ps"][by_pe[place][at]]:
            work = found[kernels[by_pe[place][at]]]
            work.hbm_bytes += int(hbm[row]) if engines[row] == "pe_dma" else 0
            work.flops += flops.get((sip, int(row)), 0)


def _hbm_bytes(ops: Any) -> Any:
    """The bytes of each operation that are read from HBM or written to it."""
    ends = sum((ops[name] >> _HBM_BIT) & 1 for name in ("address", "read_address"))
    return ops["nbytes"] * ends


def _flops(records: RecordedRun) -> dict[tuple[int, int], int]:
    """The floating-point operations of each record of the op log which has any."""
    return {
        (line.sip, line.index): _count(line)
        for line in _lines(records)
        if line.engine in ("pe_gemm", "pe_math")
    }


def _lines(records: RecordedRun) -> Iterator[_ShapedOp]:
    path = records.directory and records.directory / OP_LOG
    if path is None or not path.exists():
        return
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
