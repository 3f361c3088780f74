from tests.mutants.mutant import Mutant

DMA = "sip_node/chip/pe/dma.py"
WINDOW = "sip_node/chip/pe/read_window.py"

MUTANTS = (
    Mutant(
        name="dma-window-one-more",
        file=DMA,
        old="places = topology.pe.dma.outstanding\n",
        new="places = topology.pe.dma.outstanding + 1\n",
        breaks="At most `outstanding` packets are in flight.",
        noticed_by="q.window",
    ),
    Mutant(
        name="dma-window-per-request",
        file=DMA,
        old="request.sent = min(begin + request.packet_bytes, request.nbytes)",
        new="request.sent = request.nbytes",
        breaks="A READ requests one packet, so that the window bounds the bytes in flight.",
        noticed_by="q.window",
    ),
    Mutant(
        name="dma-place-free-with-the-head",
        file=DMA,
        old="self._window.landed(landed_ps)",
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
        old="        self._reading.append(request)",
        new="        self._reading.appendleft(request)",
        breaks="A request takes its first turn behind the others.",
        noticed_by="q.turn",
    ),
    Mutant(
        name="dma-queue-last-in-first-out",
        file=DMA,
        old="request = self._waiting.popleft()",
        new="request = self._waiting.pop()",
        breaks="The oldest request gets the next channel.",
        noticed_by="q.channels",
    ),
    Mutant(
        name="dma-time-includes-the-queue",
        file=DMA,
        old="            request.start_ps = self._engine.now_ps\n",
        new="            request.start_ps = 0\n",
        breaks="The time of a request starts when it gets a channel.",
        noticed_by="q.channels",
    ),
    Mutant(
        name="dma-overhead-in-the-queue",
        file=DMA,
        old="self._engine.at(self._engine.now_ps + self._overhead_ps, request.begin, request)",
        new="self._engine.at(max(self._engine.now_ps, request.tag and self._overhead_ps), "
        "request.begin, request)",
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
        file=DMA,
        old="""        if not last:
            self._stream(request)
""",
        new="""        if not last:
            self._engine.at(left_ps, self._stream, request)
""",
        breaks="A packet of a store reserves the port of TCM when its predecessor begins.",
        noticed_by="q.port",
    ),
    Mutant(
        name="dma-store-reserves-all-at-once",
        file=DMA,
        old="head_ps, left_ps = self._context.tcm.reserve(now_ps, now_ps, nbytes)",
        new="head_ps, left_ps = self._context.tcm.reserve(\n"
        "            now_ps, now_ps, request.nbytes - request.sent\n"
        "        )",
        breaks="A store reserves the port of TCM packet by packet.",
        noticed_by="a.0",
    ),
    Mutant(
        name="dma-load-ends-before-it-lands",
        file=DMA,
        old="self._engine.at(landed_ps, self._finish, request)",
        new="self._engine.at(tail_ps, self._finish, request)",
        breaks="A load is complete when its last byte has passed the port of TCM.",
        noticed_by="q.port",
    ),
    Mutant(
        name="dma-push-ends-with-the-head",
        file=DMA,
        old="self._engine.at(left_ps, self._finish, request)",
        new="self._engine.at(self._engine.now_ps, self._finish, request)",
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
        name="tile-result-buffer-free-at-once",
        file="sip_node/chip/pe/tile_dma.py",
        old="all_of(writes).then(partial(self._written, token))",
        new="self._written(token, all_of(writes))",
        breaks="The buffer of a result is free when the memory has acknowledged it.",
        noticed_by="j.buffers",
    ),
    Mutant(
        name="tile-loads-leave-out-of-order",
        file="sip_node/chip/pe/tile_dma.py",
        old="        while self._loading and self._loading[0].operands:\n"
        "            self._loading.popleft().advance()",
        new="        self._loading.remove(token)\n        token.advance()",
        breaks="Steps leave the DMA in the order in which they came.",
        noticed_by="j.buffers",
    ),
)
