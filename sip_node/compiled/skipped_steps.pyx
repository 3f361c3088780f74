"""Effects of the skipped steps of a product: records, sums, bytes in memories, and names.

The records of one period are the templates of those of the next ones. A record of a later period is
of a later step at a later time; its addresses, blocks and checksum are those of that step. Requests
in flight at the end of a skip are those in flight before it, renumbered to later steps.
"""

from runtime.core.trace import Operand
from sip_node.chip.fabric.packet cimport FabricTransfer
from sip_node.kernel.checksums cimport crc32_of
from sip_node.compiled.pipeline cimport Pipeline
from sip_node.compiled.product_walk cimport ProductWalk
from sip_node.chip.pe.compute.tile_token cimport StepTokens
from sip_node.chip.pe.compute.operand_tiles cimport StreamedTile
from sip_node.kernel.tile_data cimport TileData
from sip_node.chip.pe.compute.tile_dma cimport TileRead
from sip_node.chip.pe.compute.tile_buffers cimport FreeList

cdef enum:
    # `Kind` of transfers; see `sip_node.chip.fabric.packet`.
    DATA = 4
    # What a token has passed when its step is in the GEMM engine, and when its tile is stored.
    IN_ENGINE = 3
    IN_STORE = 4


cdef enum RecordKind:
    LOAD
    FETCH
    STEP
    STORE
    WRITTEN


cdef class RecordOfStep:
    """A record of the period that repeats."""


cdef class PeriodBegin:
    """The position of a product when a period begins: the numbers of the next steps to record."""


cdef class SkippedSteps(ProductTiles):
    """The steps of the product of `pipeline`, whose records are in `log`.

    `finish(sums, bias, activation, dtype)` rounds the sums of an output tile to its elements.
    """

    def __init__(self, Pipeline pipeline not None, OpLog log not None, finish):
        super().__init__(pipeline)
        self.rounded = finish
        self.log, self.sums, self.stored = log, {}, {}
        self.output_at = {block.address: output for output, block in enumerate(self.blocks)}
        self.buffers = {
            address: (slot, bool(is_b))
            for slot, pair in enumerate(pipeline.load.addresses)
            for is_b, address in enumerate(pair)
        }

    @property
    def next_index(self):
        """The number of the next step."""
        return self.pipeline.source.index

    @property
    def steps(self):
        """The number of steps of the product."""
        return len(self.blocks) * self.depths

    @property
    def pe(self):
        """(cube, pe), as in its records."""
        return self.pipeline.gemm._cube, self.pipeline.gemm._pe

    def begin(self, ProductWalk walk not None):
        """The position of the product at the state that `walk` has read."""
        cdef StepTokens source = self.pipeline.source
        cdef FreeList buffers = self.pipeline.fetch.buffers
        cdef PeriodBegin begin = PeriodBegin.__new__(PeriodBegin)
        cdef int slot, count = buffers.count
        cdef TileToken token
        begin.index = begin.fetched = begin.computed = begin.oldest = source.index
        begin.loading = {}
        stored = None
        for token in walk.tokens:
            if token.gemm is not source.gemm:
                continue
            begin.oldest = min(begin.oldest, token.index)
            if not token.fetched_ps:
                begin.fetched = min(begin.fetched, token.index)
                # Buffers are used in turn, so the next step with this one is `count` later.
                begin.loading[token.buffer, False] = token.index + (token.a is not None) * count
                begin.loading[token.buffer, True] = token.index + (token.b is not None) * count
            if token.passed <= IN_ENGINE:
                begin.computed = min(begin.computed, token.index)
            elif token.passed == IN_STORE:
                stored = token.index if stored is None else min(stored, token.index)
        for slot in range(buffers.filled):
            for is_b in (False, True):
                begin.loading[buffers.order[(buffers.first + slot) % count], is_b] = (
                    source.index + slot
                )
        begin.stored = (begin.computed if stored is None else stored) // self.depths
        for request, pipeline in walk.requests:
            if pipeline is self.pipeline and (<DmaRequest> request).writing is not None:
                output = self.output_at[(<DmaRequest> request).target.address]
                begin.oldest = min(begin.oldest, output * self.depths)
        return begin

    def end(self, PeriodBegin begin not None):
        """A period has passed since `begin`: the product has gone on by `period` steps."""
        self.begun, self.period = begin, self.pipeline.source.index - begin.index

    def template(self, record, waits):
        """The record of a step in the period, with its `waits`; records come in their order."""
        cdef RecordOfStep step = RecordOfStep.__new__(RecordOfStep)
        cdef PeriodBegin begun = self.begun
        step.product, step.engine, step.name = self, record.engine, record.name
        step.shape, step.dtype, step.strides = record.shape, record.dtype, record.strides
        step.inputs = record.inputs
        step.about.start_ps, step.about.end_ps = record.start_ps, record.end_ps
        step.about.cube, step.about.pe = record.cube, record.pe
        step.about.address, step.about.nbytes = record.address, record.nbytes
        step.about.flow_end = False
        step.about.requested_ps, step.about.waited_for, step.times, step.about.step = waits
        if record.engine == "pe_dma" and record.name == "load":
            step.slot, step.is_b = key = self.buffers[record.address]
            step.kind, step.number = LOAD, begun.loading[key]
            begun.loading[key] += self.pipeline.fetch.buffers.count
        elif record.engine == "pe_dma" and record.name == "store":
            step.kind, step.number = WRITTEN, self.output_at[record.address]
        elif record.engine == "pe_gemm":
            step.kind, step.number = STEP, begun.computed
            begun.computed += 1
        elif record.name == "fetch":
            step.kind, step.number, step.is_b = FETCH, begun.fetched, begun.has_a
            step.is_streamed = isinstance(self.tile(step.number, step.is_b), StreamedTile)
            begun.fetched += begun.has_a
            begun.has_a = not begun.has_a
        else:
            assert record.engine == "pe_fetch_store" and record.name == "store", record
            step.kind, step.number = STORE, begun.stored
            begun.stored += 1
        if step.kind == LOAD or step.kind == STORE:
            step.block = Operand(record.address, record.shape, record.dtype, record.strides)
        return step

    def last_alike(self):
        """The number of steps that repeat with the period, from the first one in flight on."""
        return self.steps_alike(self.begun.oldest, self.period)

    cdef OutputTile output(self, long long number):
        """The sums of an output tile."""
        cdef StepTokens source
        sums = self.sums.get(number)
        if sums is None:
            source = self.pipeline.source
            sums = self.sums[number] = source.output_of(
                source.rows[number // len(source.columns)],
                source.columns[number % len(source.columns)],
            )
        return <OutputTile> sums

    cdef unsigned int compute(self, long long index) except? 0xffffffff:
        """Add the products of a step to the sums of its output tile; returns their checksum."""
        cdef OutputTile output = self.output(index // self.depths)
        output.add(self.read(index, False), self.read(index, True))
        return output.checksum()

    cdef int finish(self, long long number) except -1:
        """Round the sums of an output tile to its bytes."""
        data = self.output(number).data
        del self.sums[number]
        self.stored[number] = (
            b"" if data is None
            else self.rounded(data, None, None, self.pipeline.source.gemm.dtype).tobytes()
        )
        return 0

    cdef int emit(
        self, RecordOfStep step, long long steps, long long moved_ps, bint is_last
    ) except -1:
        """Add the record of a step which is `steps` later, with its effects on memories."""
        cdef Operation about = step.about
        cdef TileData tile
        cdef long long number = step.number + steps
        cdef bytes content
        cdef tuple strides = step.strides, inputs = step.inputs
        about.start_ps += moved_ps
        about.end_ps += moved_ps
        about.requested_ps += moved_ps
        if step.kind == LOAD:
            tile = self.read(number, step.is_b)
            about.checksum = tile.checksum
            inputs = (<StreamedTile> self.tile(number, step.is_b)).inputs
            if is_last:
                # Those of the periods before are overwritten by now.
                self.pipeline.dma.tcm.write(step.block, tile.content)
        elif step.kind == FETCH:
            tile = self.read(number, step.is_b)
            about.checksum = tile.checksum
            if not step.is_streamed:
                inputs = tile.inputs
        elif step.kind == STEP:
            about.checksum = self.compute(number)
        else:
            number = step.number + steps // self.depths
            if step.kind == STORE:
                self.finish(number)
                self.pipeline.dma.tcm.write(step.block, self.stored[number])
            content = self.stored[number]
            about.checksum = crc32_of(<const char *> content, len(content))
            if step.kind == WRITTEN:
                piece = self.block_of(number)
                about.address, strides = piece.address, piece.strides
                self.write(number, content)
                del self.stored[number]
        return self.log.enter(
            step.engine, step.name, &about, step.shape, step.dtype, strides, inputs, None, None,
            step.times,
        )

    def resume(self, ProductWalk walk not None):
        """Take the sums and the results that are in flight, as `walk` has read them."""
        cdef OutputTile output, copied
        cdef DmaRequest request
        cdef TileToken token
        for token in walk.tokens:
            number = token.index // self.depths
            if token.gemm is not self.pipeline.source.gemm or number in self.sums:
                continue
            copied, output = self.output(number), <OutputTile> token.output
            copied.array, copied.sums, copied.summed = output.array, output.sums, output.summed
        for request, pipeline in walk.requests:
            if pipeline is self.pipeline and request.writing is not None:
                self.stored[self.output_at[request.target.address]] = request.data

    def rename(self, ProductWalk walk not None, long long steps):
        """Make what is in flight that of `steps` later, after `walk` has moved its state."""
        cdef DmaRequest request
        cdef FabricTransfer transfer
        cdef TileToken token
        cdef int index
        outputs = set()
        self.pipeline.source.index += steps
        for token in walk.tokens:
            if token.gemm is self.pipeline.source.gemm:
                self.rename_token(token, outputs)
        for index, (request, pipeline) in enumerate(walk.requests):
            if pipeline is self.pipeline:
                self.rename_request(request, steps // self.depths, index in walk.written)
        for transfer, index in walk.transfers:
            request, pipeline = walk.requests[index]
            if pipeline is not self.pipeline:
                continue
            if request.writing is not None:
                transfer.address = request.writing.address
                continue
            transfer.address = request.reading.address
            if transfer.kind == DATA and transfer.payload:
                transfer.payload = self.content(self.tile_of(request))
        self.sums.clear()
        self.stored.clear()

    cdef int rename_token(self, TileToken token, set outputs) except -1:
        cdef long long number = token.index // self.depths
        cdef OutputTile output = <OutputTile> token.output, computed
        self.pipeline.source.place(token)
        if token.a is not None:
            token.a = self.loaded(token.index, False, token.buffer)
        if token.b is not None:
            token.b = self.loaded(token.index, True, token.buffer)
        if number not in outputs:
            outputs.add(number)
            computed = self.output(number)
            output.memory = computed.memory
            output.array, output.sums, output.summed = (
                computed.array, computed.sums, computed.summed
            )
        return 0

    cdef StreamedTile tile_of(self, DmaRequest request):
        """The tile that a request reads."""
        cdef TileRead read = <TileRead> request
        return <StreamedTile> self.tile(read.token.index, read.operand)

    cdef int rename_request(
        self, DmaRequest request, long long outputs, bint is_written
    ) except -1:
        cdef StreamedTile tile
        cdef long long number
        if request.writing is None:
            tile = self.tile_of(request)
            request.inputs, request.reading.address = tile.inputs, tile.address
            if request.data:
                request.data = self.content(tile)
            return 0
        number = self.output_at[request.target.address] + outputs
        request.target = self.block_of(number)
        request.data = request.writing.payload = self.stored[number]
        request.writing.address = request.target.address
        if is_written:
            self.write(number, request.data)
        return 0


def emit_periods(list templates not None, long long now_ps, long long begin_ps,
                 long long period_ps, long long periods):
    """Add the records of whole periods from `now_ps` on; that of the templates is at `begin_ps`."""
    cdef RecordOfStep step
    cdef SkippedSteps product
    cdef long long number, steps
    for number in range(periods):
        for step in templates:
            product = step.product
            steps = product.pipeline.source.index - product.begun.index + number * product.period
            product.emit(
                step, steps, now_ps - begin_ps + number * period_ps, number == periods - 1
            )
