"""The accesses of kernels to memories: the PE, the memory, and the bytes of each."""

from collections import defaultdict
from collections.abc import Mapping

import numpy as np
from msgspec import Struct

from kernbench.explain.records import RecordedRun
from kernbench.explain.records.issuing_steps import issuing_steps
from kernbench.explain.why.machine_times import MachineTimes
from kernbench.explain.why.work import TransferWork
from kernbench.oracle.theory.paths.routes import RouteEnd
from runtime.core.errors import PhysAddrError
from runtime.core.run_tables import NONE, OPS, STEPS
from runtime.model.addresses import AddressMap, PhysAddr

_READS, _WRITES = ("load", "gather"), ("store",)
_REGION = 20
"""Bits of an address within a region that has one owner."""


class MemoryAccessOp(Struct, frozen=True, gc=False):
    """An operation of a DMA engine: row `op` of the operations of its SIP, issued by row `step`
    of the steps. `memory` is what it reads or writes, `time_ps` its service and queues on the way.
    """

    sip: int
    cube: int
    pe: int
    op: int
    step: int
    is_read: bool
    memory: RouteEnd
    address: int
    nbytes: int
    begin_ps: int
    time_ps: int

    @property
    def reader(self) -> RouteEnd:
        """The PE of the engine."""
        return RouteEnd("pe", self.sip, self.cube, self.pe)

    @property
    def own_slice(self) -> RouteEnd:
        """The HBM slice of the PE."""
        return RouteEnd("hbm", self.sip, self.cube, self.pe)

    @property
    def is_own(self) -> bool:
        """Whether the memory is the slice of the PE, or no HBM."""
        return self.memory.kind != "hbm" or self.memory == self.own_slice

    def local_ps(self, times: MachineTimes) -> int:
        """The time of the same bytes in the slice of the PE, without other traffic."""
        return _total_ps(times, self._work(self.own_slice))

    def alone_ps(self, times: MachineTimes) -> int:
        """The time of the access where nothing else is on its way."""
        return _total_ps(times, self._work(self.memory))

    def latency_ps(self, times: MachineTimes) -> int:
        """The part of that time which does not depend on the bytes."""
        return times.of(self._work(self.memory)).fixed_ps

    def bytes_ps(self, times: MachineTimes) -> float:
        """The part of that time for the bytes, at the slowest server of the route."""
        return float(times.of(self._work(self.memory)).bytes_ps)

    def _work(self, memory: RouteEnd) -> TransferWork:
        if self.is_read:
            return TransferWork("read", memory, self.reader, self.nbytes)
        return TransferWork("write", self.reader, memory, self.nbytes)


def _total_ps(times: MachineTimes, work: TransferWork) -> int:
    time = times.of(work)
    return round(time.fixed_ps + time.bytes_ps)


class KernelAccesses:
    """The accesses of the kernels of a run, by SIP and by the number of their program."""

    def __init__(self, records: RecordedRun) -> None:
        self._records = records
        self._addresses = AddressMap(records.topology)
        self._owners: dict[int, RouteEnd | None] = {}
        self._by_program: dict[int, Mapping[int, list[MemoryAccessOp]]] = {}

    def of_program(self, sip: int, program: int) -> list[MemoryAccessOp]:
        """The accesses of a program in the order of their ends."""
        if sip not in self._by_program:
            self._by_program[sip] = self._of_sip(sip)
        return self._by_program[sip].get(program, [])

    def _of_sip(self, sip: int) -> Mapping[int, list[MemoryAccessOp]]:
        ops, steps = self._records.table(OPS, sip), self._records.table(STEPS, sip)
        issuing = issuing_steps(ops, steps)
        names = ops.text("name")
        chosen = ops.text("engine").equal("pe_dma") & (issuing != NONE)
        chosen &= names.matching((*_READS, *_WRITES).__contains__)
        rows = np.flatnonzero(chosen)
        reads = names.matching(_READS.__contains__)[rows]
        addresses = np.where(reads, ops["read_address"][rows], ops["address"][rows])
        times = ops["end_ps"][rows] - ops["start_ps"][rows]
        columns = (
            ops["cube"][rows],
            ops["pe"][rows],
            rows,
            issuing[rows],
            reads,
            addresses,
            ops["nbytes"][rows],
            ops["start_ps"][rows],
            times,
            steps["program"][issuing[rows]],
        )
        by_program = defaultdict[int, list[MemoryAccessOp]](list)
        for row in zip(*(each.tolist() for each in columns), strict=True):
            cube, pe, op, step, is_read, address, nbytes, begin_ps, time_ps, program = row
            memory = self._owner(address)
            if memory is None:
                continue
            by_program[program].append(
                MemoryAccessOp(
                    sip=sip,
                    cube=cube,
                    pe=pe,
                    op=op,
                    step=step,
                    is_read=is_read,
                    memory=memory,
                    address=address,
                    nbytes=nbytes,
                    begin_ps=begin_ps,
                    time_ps=time_ps,
                )
            )
        return by_program

    def _owner(self, address: int) -> RouteEnd | None:
        """The memory in which an address lies: a slice, an SRAM, or the PE of a TCM."""
        region = address >> _REGION
        if region not in self._owners:
            self._owners[region] = self._decoded(address)
        return self._owners[region]

    def _decoded(self, address: int) -> RouteEnd | None:
        try:
            memory = PhysAddr.decode(address, self._addresses)
        except PhysAddrError:
            return None
        match memory.resource:
            case "hbm" | "sram":
                return RouteEnd(memory.resource, memory.sip, memory.cube, memory.pe)
            case _:
                return RouteEnd("pe", memory.sip, memory.cube, memory.pe)
