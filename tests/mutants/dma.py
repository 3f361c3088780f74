from tests.mutants.mutant import Mutant

DMA = "sip_node/chip/pe/dma.py"
WINDOW = "sip_node/chip/pe/read_window.py"
LANDING = "sip_node/chip/pe/data_landing.py"
INDEXED = "sip_node/chip/pe/indexed_read.py"
EGRESS = "sip_node/chip/fabric/egress_stream.py"

MUTANTS = (
    Mutant(
        name="dma-window-one-more",
        file=DMA,
        old="            topology.pe.dma.outstanding,\n",
        new="            topology.pe.dma.outstanding + 1,\n",
        breaks="At most `outstanding` packets are in flight.",
        noticed_by="q.window",
    ),
    Mutant(
        name="dma-window-per-request",
        file=WINDOW,
        old="reading.begin = min(begin + self._packet_bytes, transfer.total)",
        new="reading.begin = transfer.total",
        breaks="A READ requests one packet, so that the window bounds the bytes in flight.",
        noticed_by="q.window",
    ),
    Mutant(
        name="dma-place-free-with-the-head",
        file=LANDING,
        old="self._window.landed(tail_ps)",
        new="self._window.landed(self._engine.now_ps)",
        breaks="A packet keeps its place until its last byte has landed.",
        noticed_by="q.window",
    ),
    Mutant(
        name="dma-no-turns",
        file=WINDOW,
        old="                reading.append(request)",
        new="                reading.appendleft(request)",
        breaks="Requests with READs left take turns.",
        noticed_by="q.turn",
    ),
    Mutant(
        name="dma-newest-request-first",
        file=WINDOW,
        old="        self.reading.append(OpenRead(transfer, sent))",
        new="        self.reading.appendleft(OpenRead(transfer, sent))",
        breaks="A request takes its first turn behind the others.",
        noticed_by="q.turn",
    ),
    Mutant(
        name="dma-queue-last-in-first-out",
        file=DMA,
        old="self._begin(self._waiting.popleft())",
        new="self._begin(self._waiting.pop())",
        breaks="The oldest request gets the next channel.",
        noticed_by="q.channels",
    ),
    Mutant(
        name="dma-time-includes-the-queue",
        file=DMA,
        old="request.start_ps = now_ps = self._engine.now_ps",
        new="request.start_ps, now_ps = 0, self._engine.now_ps",
        breaks="The time of a request starts when it gets a channel.",
        noticed_by="q.channels",
    ),
    Mutant(
        name="dma-overhead-in-the-queue",
        file=DMA,
        old="begins_ps = now_ps + self._overhead_ps",
        new="begins_ps = max(now_ps, self._overhead_ps)",
        breaks="Every request costs the overhead of the DMA when it has its channel.",
        noticed_by="q.channels",
    ),
    Mutant(
        name="dma-one-channel-more",
        file=DMA,
        old="self._idle_channels = topology.pe.dma.channels",
        new="self._idle_channels = topology.pe.dma.channels + 1",
        breaks="At most `channels` requests are in flight.",
        noticed_by="q.channels",
    ),
    Mutant(
        name="dma-store-gives-way-twice",
        file=EGRESS,
        old="            self._reserve(departure)\n",
        new="            self._engine.at(left_ps, self._reserve, departure)\n",
        breaks="A packet of a store reserves the port of TCM when its predecessor begins.",
        noticed_by="q.port",
    ),
    Mutant(
        name="dma-store-reserves-all-at-once",
        file=EGRESS,
        old="port.serve(now_ps, now_ps, departure.nbytes)",
        new="port.serve(now_ps, now_ps, transfer.total - departure.begin)",
        breaks="A store reserves the port of TCM packet by packet.",
        noticed_by="a.0",
    ),
    Mutant(
        name="dma-load-ends-before-it-lands",
        file=LANDING,
        old="            tail_ps = port.tail_ps\n",
        new="",
        breaks="A load is complete when its last byte has passed the port of TCM.",
        noticed_by="q.port",
    ),
    Mutant(
        name="dma-push-ends-with-the-head",
        file=DMA,
        old="self._engine.at(left_ps, self._finish, self._requests[transfer.tag])",
        new="self._engine.at(\n"
        "                self._engine.now_ps, self._finish, self._requests[transfer.tag]\n"
        "            )",
        breaks="A send is complete when its last byte has left TCM.",
        noticed_by="i.",
    ),
    Mutant(
        name="dma-planes-at-the-pitch-of-rows",
        file="sip_node/chip/strided_block.py",
        old="self._runs(plane * self.plane_pitch, start, part)",
        new="self._runs(plane * self.pitch, start, part)",
        breaks="The planes of a block start at its second pitch.",
        noticed_by="q.planes",
    ),
    Mutant(
        name="gather-list-is-free",
        file=INDEXED,
        old="self._port.reserve(now_ps, now_ps, self._list_bytes)",
        new="self._port.reserve(now_ps, now_ps, 0)",
        breaks="The index list passes the port of TCM.",
        noticed_by="q.gather",
    ),
    Mutant(
        name="gather-makes-no-descriptor-ahead",
        file=INDEXED,
        old="self._engine.at(max(self._engine.now_ps, self._ready_ps), self._open)",
        new="self._engine.at(self._engine.now_ps + self._row_ps, self._open)",
        breaks="The next descriptor is made while the READs of a row wait for places.",
        noticed_by="q.gather.long",
    ),
    Mutant(
        name="gather-all-descriptors-at-once",
        file=INDEXED,
        old="self._ready_ps = self._engine.now_ps + self._row_ps",
        new="self._ready_ps = self._engine.now_ps",
        breaks="Each row of a gather takes a descriptor.",
        noticed_by="q.gather.row",
    ),
    Mutant(
        name="tile-result-buffer-free-at-once",
        file="sip_node/chip/pe/tile_dma.py",
        old="_write_pieces(self._dma, output.memory, block, content).then("
        "partial(self._written, token))",
        new="self._written(token, _write_pieces(self._dma, output.memory, block, content))",
        breaks="The buffer of a result is free when the memory has acknowledged it.",
        noticed_by="j.buffers",
    ),
    Mutant(
        name="tile-loads-leave-out-of-order",
        file="sip_node/chip/pe/tile_dma.py",
        old="        while loading and not loading[0].loading:\n"
        "            loading.popleft().advance()",
        new="        loading.remove(token)\n        token.advance()",
        breaks="Steps leave the DMA in the order in which they came.",
        noticed_by="j.buffers",
    ),
)
