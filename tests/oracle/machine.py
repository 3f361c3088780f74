"""The oracle: the memory traffic of the PEs of one SIP, in plain SimPy.

It shares no code with the model or with the theory. A load or a store is a process, and so is each
of its packets, which waits for the links of its route one after another. Its head goes on when the
service of a link begins; the time of its tail it carries along.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple, cast

import simpy

from tests.oracle.routes import Hop, Keys, Node, SipRoutes, exact, in_ps
from tests.oracle.servers import ChannelMemory, MomentClock, QueueServer, Steps


class OracleRequest(NamedTuple):
    """A load or a store of `nbytes` by the DMA of `pe`, the first of them at `offset` of a memory.

    They are rows of `row_bytes` at a pitch; a block without gaps is a part of one long row.
    """

    pe: Node
    loads: bool
    memory: Node
    offset: int
    nbytes: int
    row_bytes: int = 1 << 62
    pitch: int = 0


class KernelCommand(NamedTuple):
    """A command of a kernel, which goes on when the request is complete, or when it is queued."""

    request: OracleRequest
    waits: bool


class OracleTimes(NamedTuple):
    """Times at which a request got a channel of its DMA, and was complete."""

    start_ps: int
    end_ps: int


@dataclass(eq=False)
class _Progress:
    """A request with its bytes requested or sent, and those landed or written until `end_ps`."""

    request: OracleRequest
    complete: simpy.Event
    sent: int = 0
    served: int = 0
    end_ps: int = 0

    def next_piece(self, packet_bytes: int) -> tuple[int, int]:
        """The begin of the next packet, among the bytes of the request, and its bytes."""
        begin = self.sent
        self.sent = min(begin + packet_bytes, self.request.nbytes)
        return begin, self.sent - begin


class _OracleDma(NamedTuple):
    """The engine of a PE: its channels, the port of its TCM, and the window of its loads.

    `places` has, for each free place of the window, when its packet lands and the cause of that.
    """

    channels: simpy.Resource
    port: QueueServer
    loads: simpy.Store
    places: simpy.Store


class OracleMachine:
    """One SIP with the keys of a topology file."""

    def __init__(self, keys: Keys) -> None:
        self._keys, self._clock = keys, MomentClock()
        self._packet_bytes, self._control_bytes = keys["packet_bytes"], keys["control_bytes"]
        self._hops, self._link = cache(SipRoutes(keys).hops), cache(self._new_link)
        self._memory, self._dma = cache(self._new_memory), cache(self._new_dma)
        self._latencies_ps = {"hbm": in_ps(keys["cube"]["hbm_ctrl"]["latency_ns"]), "sram": 0}

    def times(self, requests: Sequence[tuple[int, OracleRequest]]) -> list[OracleTimes]:
        """The times of requests, each of which is given to the DMA at a time."""
        done = [self._clock.process(self._request_at(*each)) for each in requests]
        self._clock.run()
        return [cast("OracleTimes", each.value) for each in done]

    def kernel_times(
        self, start_ps: int, kernels: Sequence[Sequence[KernelCommand]]
    ) -> list[list[OracleTimes]]:
        """The times of the requests of kernels, on a PE each, which start together."""
        done = [self._clock.process(self._kernel(start_ps, each)) for each in kernels]
        self._clock.run()
        return [cast("list[OracleTimes]", each.value) for each in done]

    def _kernel(self, start_ps: int, commands: Sequence[KernelCommand]) -> Steps:
        pe, requests = self._keys["pe"], list[simpy.Process]()
        yield from self._clock.moment(start_ps)
        for request, waits in commands:
            issue_ps = sum(in_ps(pe[part]["overhead_ns"]) for part in ("cpu", "scheduler", "mmu"))
            yield from self._clock.moment(self._clock.now_ps + issue_ps)
            requests.append(self._clock.process(self._request(request)))
            if waits:
                yield requests[-1]
        yield self._clock.all_of(requests)
        return [request.value for request in requests]

    def _request_at(self, time_ps: int, request: OracleRequest) -> Steps:
        yield from self._clock.moment(time_ps)
        return (yield from self._request(request))

    def _new_link(self, hop: Hop) -> QueueServer:
        return QueueServer(self._clock, hop.gbs)

    def _new_memory(self, node: Node) -> ChannelMemory:
        hbm, sram_gbs = self._keys["hbm"], self._keys["cube"]["sram_to_router_bw_gbs"]
        if node[0] == "sram":
            # A port for reads and a port for writes.
            return ChannelMemory(self._clock, 2, sram_gbs, 0)
        control = self._keys["cube"]["hbm_ctrl"]
        gbs = exact(hbm["pc_bw_gbs"]) * exact(control["efficiency"])
        return ChannelMemory(self._clock, hbm["num_pcs"], gbs, in_ps(control["switch_penalty_ns"]))

    def _shares(self, request: OracleRequest, begin: int, nbytes: int) -> dict[int, int]:
        """The bytes of a packet on each channel. Those of HBM change with each burst."""
        if request.memory[0] == "sram":
            return {int(not request.loads): nbytes}
        burst, shares = self._keys["hbm"]["burst_bytes"], dict[int, int]()
        while nbytes:
            row, column = divmod(begin, request.row_bytes)
            offset = request.offset + row * request.pitch + column
            piece = min(request.row_bytes - column, burst - offset % burst, nbytes)
            channel = offset // burst % self._keys["hbm"]["num_pcs"]
            shares[channel] = shares.get(channel, 0) + piece
            begin, nbytes = begin + piece, nbytes - piece
        return shares

    def _new_dma(self, _pe: Node) -> _OracleDma:
        clock, keys = self._clock, self._keys["pe"]
        channels = simpy.Resource(clock, keys["dma"]["channels"])
        port = QueueServer(clock, keys["tcm"]["bw_gbs"])
        dma = _OracleDma(channels, port, simpy.Store(clock), simpy.Store(clock))
        for _ in range(keys["dma"]["outstanding"]):
            dma.places.put((0, 0))
        clock.process(self._window(dma))
        return dma

    def _request(self, request: OracleRequest) -> Steps:
        dma, progress = self._dma(request.pe), _Progress(request, self._clock.event())
        channel = dma.channels.request()
        yield channel
        start_ps = self._clock.now_ps
        overhead_ps = in_ps(self._keys["pe"]["dma"]["overhead_ns"])
        yield from self._clock.moment(start_ps + overhead_ps)
        if request.loads:
            dma.loads.put(progress)
        else:
            self._clock.process(self._store(dma, progress))
        yield progress.complete
        dma.channels.release(channel)
        return OracleTimes(start_ps, self._clock.now_ps)

    def _window(self, dma: _OracleDma) -> Steps:
        """Send READs, each when it has a place, one for each load in turn."""
        while True:
            load: _Progress = yield dma.loads.get()
            waits = self._clock.cause
            landed_ps, arrival = yield dma.places.get()
            if landed_ps > self._clock.now_ps:
                yield from self._clock.moment(landed_ps, max(waits, arrival))
            self._clock.process(self._read(dma, load, *load.next_piece(self._packet_bytes)))
            if load.sent < load.request.nbytes:
                dma.loads.put(load)

    def _read(self, dma: _OracleDma, load: _Progress, begin: int, nbytes: int) -> Steps:
        """A READ to the memory, and its packet of data back to the TCM."""
        clock, pe, memory = self._clock, load.request.pe, load.request.memory
        tail_ps = yield from self._travel(pe, memory, self._control_bytes, clock.now_ps)
        yield from clock.moment(tail_ps)
        shares = self._shares(load.request, begin, nbytes)
        start_ps, end_ps = yield from self._memory(memory).begin(
            load, shares, tail_ps, writes=False
        )
        latency_ps = self._latencies_ps[memory[0]]
        yield from clock.moment(start_ps + latency_ps)
        tail_ps = yield from self._travel(memory, pe, nbytes, end_ps + latency_ps)
        arrival = clock.cause
        landed_ps = yield from dma.port.begin(nbytes, tail_ps)
        dma.places.put((landed_ps, arrival))
        load.served += nbytes
        if load.served == load.request.nbytes:
            yield from clock.moment(landed_ps, arrival)
            load.complete.succeed()

    def _store(self, dma: _OracleDma, store: _Progress) -> Steps:
        """Send packets, each of which queues at the port of TCM when its predecessor begins."""
        while store.sent < store.request.nbytes:
            arrival, (begin, nbytes) = self._clock.cause, store.next_piece(self._packet_bytes)
            left_ps = yield from dma.port.begin(nbytes, self._clock.now_ps)
            yield from self._clock.moment(self._clock.now_ps, arrival)
            self._clock.process(self._write(store, begin, nbytes, left_ps))

    def _write(self, store: _Progress, begin: int, nbytes: int, tail_ps: int) -> Steps:
        """A packet to the memory; after the last one, the acknowledgement of all."""
        clock, pe, memory = self._clock, store.request.pe, store.request.memory
        tail_ps = yield from self._travel(pe, memory, nbytes, tail_ps)
        shares = self._shares(store.request, begin, nbytes)
        _, end_ps = yield from self._memory(memory).begin(store, shares, tail_ps, writes=True)
        store.served += nbytes
        store.end_ps = max(store.end_ps, end_ps)
        if store.served == store.request.nbytes:
            yield from clock.moment(store.end_ps)
            tail_ps = yield from self._travel(memory, pe, self._control_bytes, clock.now_ps)
            yield from clock.moment(tail_ps)
            store.complete.succeed()

    def _travel(self, source: Node, target: Node, nbytes: int, tail_ps: int) -> Steps:
        """Wait until the head of a packet is at `target`; returns when its tail is there."""
        for hop in self._hops(source, target):
            # It causes the next arrival, however long the link is busy.
            arrival = self._clock.cause
            yield self._clock.timeout(hop.before_ps)
            tail_ps = yield from self._link(hop).begin(nbytes, tail_ps + hop.before_ps)
            yield from self._clock.moment(self._clock.now_ps + hop.after_ps, arrival)
            tail_ps += hop.after_ps
        return tail_ps
