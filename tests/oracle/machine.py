"""The oracle: the memory traffic of the PEs of one SIP, in plain SimPy.

It shares no code with the model or with the theory. A load or a store is a process; each of its
packets is one. A packet waits for the links of its route one by one. Its head goes on when the
service of a link begins; its tail is a time that it carries.
"""

from collections import deque
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

import simpy

from tests.oracle.routes import Keys, Node, SipRoutes, exact, in_ps
from tests.oracle.servers import ChannelMemory, MomentClock, QueueServer, Steps


class DmaRequest(NamedTuple):
    """A load or a store of `nbytes` at `offset` of a memory, given to the DMA of `pe` at a time."""

    time_ps: int
    pe: Node
    loads: bool
    memory: Node
    offset: int
    nbytes: int


class DmaTimes(NamedTuple):
    """When a request got a channel of its DMA, and when it was complete."""

    start_ps: int
    end_ps: int


@dataclass(eq=False)
class _Load:
    """A load of which the bytes from `sent` on are to be requested, `landed` bytes are in TCM."""

    request: DmaRequest
    complete: simpy.Event
    sent: int = 0
    landed: int = 0


@dataclass(eq=False)
class _Store:
    """A store of which `written` bytes have begun; all of these are written at `end_ps`."""

    request: DmaRequest
    complete: simpy.Event
    written: int = 0
    end_ps: int = 0


@dataclass
class _Dma:
    """The engine of a PE: its channels, the port of its TCM, its window and the loads in turn."""

    channels: simpy.Resource
    port: QueueServer
    places: int
    loads: deque[_Load] = field(default_factory=deque[_Load])


class OracleMachine:
    """One SIP with the keys of a topology file."""

    def __init__(self, keys: Keys) -> None:
        self._keys, self._clock = keys, MomentClock()
        self._packet_bytes, self._control_bytes = keys["packet_bytes"], keys["control_bytes"]
        self._overhead_ps = in_ps(keys["pe"]["dma"]["overhead_ns"])
        self._hops = cache(SipRoutes(keys).hops)
        self._link = cache(lambda _link, gbs: QueueServer(self._clock, gbs))
        self._memory, self._dma = cache(self._new_memory), cache(self._new_dma)
        self._latencies_ps = {"hbm": in_ps(keys["cube"]["hbm_ctrl"]["latency_ns"]), "sram": 0}

    def times(self, requests: list[DmaRequest]) -> list[DmaTimes]:
        """The times of all requests."""
        processes = [self._clock.process(self._request(request)) for request in requests]
        self._clock.run()
        return [process.value for process in processes]

    def _new_memory(self, node: Node) -> ChannelMemory:
        cube, hbm = self._keys["cube"], self._keys["hbm"]
        if node[0] == "sram":
            # A port for reads and a port for writes.
            gbs = cube["sram_to_router_bw_gbs"]
            return ChannelMemory(self._clock, 2, gbs, 0, lambda _, nbytes, writes: {writes: nbytes})
        gbs = exact(hbm["pc_bw_gbs"]) * exact(cube["hbm_ctrl"]["efficiency"])
        penalty_ps = in_ps(cube["hbm_ctrl"]["switch_penalty_ns"])
        return ChannelMemory(self._clock, hbm["num_pcs"], gbs, penalty_ps, self._stripes)

    def _stripes(self, offset: int, nbytes: int, _writes: bool) -> dict[int, int]:
        """The bytes of an access to HBM on each pseudo channel: they change with each burst."""
        burst, shares = self._keys["hbm"]["burst_bytes"], dict[int, int]()
        while nbytes:
            piece = min(burst - offset % burst, nbytes)
            channel = offset // burst % self._keys["hbm"]["num_pcs"]
            shares[channel] = shares.get(channel, 0) + piece
            offset, nbytes = offset + piece, nbytes - piece
        return shares

    def _new_dma(self, _pe: Node) -> _Dma:
        keys = self._keys["pe"]
        channels = simpy.Resource(self._clock, keys["dma"]["channels"])
        port = QueueServer(self._clock, keys["tcm"]["bw_gbs"])
        return _Dma(channels, port, keys["dma"]["outstanding"])

    def _request(self, request: DmaRequest) -> Steps:
        yield from self._clock.moment(request.time_ps)
        dma, complete = self._dma(request.pe), self._clock.event()
        with dma.channels.request() as channel:
            yield channel
            start_ps = self._clock.now_ps
            yield from self._clock.moment(start_ps + self._overhead_ps)
            if request.loads:
                dma.loads.append(_Load(request, complete))
                self._send_reads(dma)
            else:
                self._clock.process(self._store(dma, _Store(request, complete)))
            yield complete
        return DmaTimes(start_ps, self._clock.now_ps)

    def _travel(self, source: Node, target: Node, nbytes: int, tail_ps: int) -> Steps:
        """Wait until the head of a packet is at `target`; returns when its tail is there."""
        for hop in self._hops(source, target):
            # The moment that causes the next arrival is this one, however long the link is busy.
            arrival = self._clock.cause
            if hop.before_ps:
                yield self._clock.timeout(hop.before_ps)
            link = self._link(hop.link, hop.gbs)
            tail_ps = yield from link.begin(nbytes, tail_ps + hop.before_ps)
            yield from self._clock.moment(self._clock.now_ps + hop.after_ps, arrival)
            tail_ps += hop.after_ps
        return tail_ps

    def _send_reads(self, dma: _Dma) -> None:
        """Send READs while a place of the window is free, one for each load in turn."""
        while dma.loads and dma.places:
            dma.places -= 1
            load = dma.loads.popleft()
            begin = load.sent
            load.sent = min(begin + self._packet_bytes, load.request.nbytes)
            if load.sent < load.request.nbytes:
                dma.loads.append(load)
            self._clock.process(self._read(dma, load, begin, load.sent - begin))

    def _read(self, dma: _Dma, load: _Load, begin: int, nbytes: int) -> Steps:
        """A READ to the memory, and its packet of data back to the TCM."""
        clock, (_, pe, _, memory, offset, total) = self._clock, load.request
        tail_ps = yield from self._travel(pe, memory, self._control_bytes, clock.now_ps)
        yield from clock.moment(tail_ps)
        start_ps, end_ps = yield from self._memory(memory).begin(
            load, offset + begin, nbytes, clock.now_ps, writes=False
        )
        latency_ps = self._latencies_ps[memory[0]]
        yield from clock.moment(start_ps + latency_ps)
        tail_ps = yield from self._travel(memory, pe, nbytes, end_ps + latency_ps)
        arrival = clock.cause
        landed_ps = yield from dma.port.begin(nbytes, tail_ps)
        yield from clock.moment(landed_ps, arrival)
        load.landed += nbytes
        dma.places += 1
        if load.landed == total:
            load.complete.succeed()
        self._send_reads(dma)

    def _store(self, dma: _Dma, store: _Store) -> Steps:
        """Send the packets of a store: each takes its place at the port when the one before begins."""
        total = store.request.nbytes
        for begin in range(0, total, self._packet_bytes):
            nbytes, turn = min(self._packet_bytes, total - begin), self._clock.cause
            left_ps = yield from dma.port.begin(nbytes, self._clock.now_ps)
            yield from self._clock.moment(self._clock.now_ps, turn)
            self._clock.process(self._write(store, begin, nbytes, left_ps))

    def _write(self, store: _Store, begin: int, nbytes: int, tail_ps: int) -> Steps:
        """A packet to the memory; after the last one has begun, the acknowledgement of all."""
        clock, (_, pe, _, memory, offset, total) = self._clock, store.request
        tail_ps = yield from self._travel(pe, memory, nbytes, tail_ps)
        _, end_ps = yield from self._memory(memory).begin(
            store, offset + begin, nbytes, tail_ps, writes=True
        )
        store.written += nbytes
        store.end_ps = max(store.end_ps, end_ps)
        if store.written == total:
            yield from clock.moment(store.end_ps)
            tail_ps = yield from self._travel(memory, pe, self._control_bytes, clock.now_ps)
            yield from clock.moment(tail_ps)
            store.complete.succeed()
