"""Reads and writes of the memories of an idle system: start, route, memory, bytes.

The one place in which the parts of such a transfer are added. A read is a request and its data, a
write is data and their acknowledgement. The DMA of a PE starts it, reads with a window of packets
in flight, and moves the bytes through the port of its TCM; the host has none of the three.
"""

from dataclasses import replace

from kernbench.oracle.theory.commands import FixedTimes
from kernbench.oracle.theory.paths.floor_plan import FloorPlan
from kernbench.oracle.theory.paths.route_times import RouteTimes, in_system
from kernbench.oracle.theory.paths.routes import RouteEnd
from kernbench.oracle.theory.paths.transfers import Leg, TimedHop, TransferForm
from kernbench.oracle.theory.servers import PacketWindow, Serialiser
from kernbench.oracle.theory.topology_file import TopologyFile

CubePe = tuple[int, int]


class MemoryAccess:
    """The accesses of one topology file; PEs and the owners of slices are (cube, PE)."""

    def __init__(self, file: TopologyFile) -> None:
        self.plan, self.times = FloorPlan(file), RouteTimes(file)
        self.commands = self.times.commands
        self._window: int = file["pe.dma.outstanding"]

    def read(self, reader: RouteEnd, memory: RouteEnd, nbytes: int) -> TransferForm:
        """A read by a PE or by the host, from the channel of the DMA on."""
        # A read has a round trip before its first byte; a write sends its data at once and ends
        # with the acknowledgement.
        request = self.times.control("request", self.hops(reader, memory))
        answer = self.hops(memory, reader)
        if memory.kind == "hbm":
            own = self._file_of(memory)
            answer = (self.times.first_byte(_name(memory), own), *answer)
        window = None
        if reader.kind == "pe":
            # The host requests any number of bytes at once.
            latency_ps = request.total_ps + sum(hop.latency_ps for hop in answer)
            window = PacketWindow(self._window, latency_ps)
        ends = self.memory(memory), self.memory(reader)
        data = self.times.data(answer, nbytes, *ends, window)
        start_ps = self._commands_of(reader).read_start_ps
        return TransferForm((self._started(request, reader, start_ps), data))

    def write(self, writer: RouteEnd, memory: RouteEnd, nbytes: int) -> TransferForm:
        """A write by a PE or by the host, from the channel of the DMA on."""
        return self._written(writer, memory, nbytes, self._commands_of(writer).write_start_ps)

    def copy(self, owner: RouteEnd, memory: RouteEnd, nbytes: int) -> TransferForm:
        """A copy from the TCM of a PE to a memory, as its DMA makes for what has been received."""
        return self._written(owner, memory, nbytes, self._commands_of(owner).read_start_ps)

    def load_ps(self, pe: CubePe, owner: CubePe, nbytes: int) -> int:
        """A command that loads from a slice: issue, MMU, then the read."""
        return self.commands.translated_ps + self.dma_ps(pe, owner, nbytes)

    def dma_ps(self, pe: CubePe, owner: CubePe, nbytes: int) -> int:
        """A load from the channel of the DMA on, as the scheduler loads tiles."""
        return self.read(*pe_and_slice(pe, owner), nbytes).total_ps

    def store_ps(self, pe: CubePe, owner: CubePe, nbytes: int) -> int:
        """A command that stores to a slice: issue, MMU, then the write."""
        return self.commands.translated_ps + self.write(*pe_and_slice(pe, owner), nbytes).total_ps

    def message(self, source: RouteEnd, target: RouteEnd, nbytes: int) -> Leg:
        """Bytes from one component to another, between the memories there."""
        ends = self.memory(source), self.memory(target)
        return self.times.data(self.hops(source, target), nbytes, *ends)

    def hops(self, source: RouteEnd, target: RouteEnd) -> tuple[TimedHop, ...]:
        """The hops between two components."""
        return self.times.hops(self.plan.route(source, target), source)

    def memory(self, end: RouteEnd) -> Serialiser | None:
        """The memory at an end of a transfer, where it limits the bandwidth."""
        if end.kind == "hbm":
            return self.times.slice(_name(end), self._file_of(end))
        return self.times.tcm(_name(end), self._file_of(end)) if end.kind == "pe" else None

    def _file_of(self, end: RouteEnd) -> TopologyFile:
        return self.times.parts.file_of((end.sip, end.name))

    def _commands_of(self, end: RouteEnd) -> FixedTimes:
        """The fixed times of the component at an end."""
        own = self._file_of(end)
        return self.commands if own is self.times.file else FixedTimes(own)

    def _written(
        self, writer: RouteEnd, memory: RouteEnd, nbytes: int, start_ps: int
    ) -> TransferForm:
        data = self.message(writer, memory, nbytes)
        # The control packet ends at an interface, not in a memory.
        answer = self.times.control("ack", self.hops(memory, writer))
        return TransferForm((self._started(data, writer, start_ps), answer))

    def _started(self, leg: Leg, by: RouteEnd, start_ps: int) -> Leg:
        """The first leg of a transfer, with the start in the DMA."""
        if by.kind != "pe":
            return leg
        return replace(leg, hops=(TimedHop(f"{_name(by)}.dma", start_ps, wire_ps=0), *leg.hops))


def pe_and_slice(pe: CubePe, owner: CubePe) -> tuple[RouteEnd, RouteEnd]:
    """A PE, and the slice of the same or of another one."""
    return RouteEnd("pe", 0, *pe), RouteEnd("hbm", 0, *owner)


def _name(end: RouteEnd) -> str:
    return in_system(end.name, end.sip)
