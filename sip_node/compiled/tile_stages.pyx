"""The stages through which every step of a matrix product passes, in C.

A token goes from stage to stage by their method `accept`, so a stage in Python, such as the vector
engine, stands anywhere in its route. Records are built by position: by keyword takes twice as long.
"""

from sip_node.chip.pe.tile_buffers cimport FreeList
from sip_node.compiled.calendar cimport Calendar, Event
from sip_node.chip.op_log cimport OpLog
from sip_node.compiled.operation cimport FOR_ENGINE, FOR_OPERAND, Operation
from sip_node.compiled.service cimport Service
from sip_node.compiled.tile_data cimport TileData
from sip_node.compiled.tile_token cimport OutputTile, StepShape, Token

cdef enum:
    NORMAL = 1


cdef class FetchStage(PortStage):
    """The twin of `ReferenceFetchPort`."""

    def __init__(self, Calendar engine not None, server, OpLog log not None, at, registers,
                 FreeList buffers):
        self.join(engine, log, at)
        self.server, self.registers, self.buffers = server, registers, buffers
        self.sets, self.accumulators = registers.sets, registers.accumulators
        self.addresses = [(registers.a(each), registers.b(each)) for each in range(registers.SETS)]
        self.open_ps, self.turn_ps = 0, -1
        registers.sets.when_freed(self.go_on)
        registers.accumulators.when_freed(self.go_on)

    cdef int act(self, Event event, object subject) except -1:
        return self.end(<Token> subject)

    cdef int begin(self) except -1:
        """Begin the next fetch if port, register set, operands and accumulator are there."""
        cdef Token token
        cdef OutputTile output
        cdef Event event
        cdef long long now_ps = self.calendar.now_ps
        if self.is_busy or not self.sets.filled:
            return 0
        if self.open_ps < 0:
            self.open_ps = now_ps
        if not self.waiting:
            return 0
        if self.turn_ps < 0:
            self.turn_ps = now_ps
        token = <Token> self.waiting[0]
        output = <OutputTile> token.output
        if token.first and output.start is not None:
            # A sum with an initial value needs its accumulator before that value is fetched.
            if not self.accumulators.filled:
                return 0
            output.take_accumulator(self.registers)
            output.data = output.start.data
        self.waiting.popleft()
        self.is_busy = True
        token.open_ps, token.turn_ps, token.fetch_ps = self.open_ps, self.turn_ps, now_ps
        self.open_ps = self.turn_ps = -1
        token.registers = self.sets.take()
        self.fetches = 0
        if token.first and output.start is not None:
            self.fetch(output.start)
        self.fetch(<TileData> token.a)
        self.fetch(<TileData> token.b)
        if token.last and output.bias is not None:
            # With the last step, which is when the epilogue needs it: the row is occupied briefly.
            output.bias_row = self.registers.biases.take()
            self.fetch(output.bias)
        event.actor = self.number
        return self.calendar.insert(
            self.fetched[self.fetches - 1].tail_ps, NORMAL, event, token
        )

    cdef int fetch(self, TileData tile) except -1:
        """Reserve the port for a tile."""
        self.fetches += 1
        return self.serve(tile.nbytes, &self.fetched[self.fetches - 1])

    cdef int end(self, Token token) except -1:
        cdef OutputTile output = <OutputTile> token.output
        cdef int fetches = self.fetches
        address_a, address_b = self.addresses[token.registers]
        self.fetches = 0
        if token.first and output.start is not None:
            self.record(token, output.start, output.address)
        self.record(token, <TileData> token.a, address_a)
        self.record(token, <TileData> token.b, address_b)
        if self.fetches < fetches:
            self.record(token, output.bias, self.registers.bias(output.bias_row))
        self.records += fetches
        self.is_busy = False
        token.fetched_ps = self.calendar.now_ps
        token.go_on()
        # The operands are in registers, so the next DMA may overwrite their buffers in TCM.
        self.buffers.free(token.buffer)
        return self.begin()

    cdef int record(self, Token token, TileData tile, long long address) except -1:
        """Record the next fetch of those that have ended."""
        cdef Service *service = &self.fetched[self.fetches]
        cdef Operation about
        self.fetches += 1
        about.start_ps, about.end_ps = service.start_ps, service.tail_ps
        about.cube, about.pe, about.flow_end = self.cube, self.pe, False
        about.address, about.nbytes, about.checksum = address, tile.nbytes, tile.checksum
        about.requested_ps, about.waited_for = token.arrived_ps, FOR_ENGINE
        return self.log.enter(
            "pe_fetch_store", "fetch", &about, tile.shape, tile.element, (), tile.inputs, None,
            None, None,
        )


cdef class GemmStage(SerialStage):
    """The twin of `ReferenceGemmSteps`."""

    def __init__(self, Calendar engine not None, OpLog log not None, at, registers,
                 TileProducts products=None):
        self.join(engine, log, at)
        self.registers, self.products, self.macs = registers, products, 0
        self.sets, self.accumulators = registers.sets, registers.accumulators
        registers.accumulators.when_freed(self.go_on)

    cdef int act(self, Event event, object subject) except -1:
        return self.end(<Token> subject, event.tail_ps)

    cdef int begin(self) except -1:
        cdef Token token
        cdef OutputTile output
        cdef Event event
        cdef long long now_ps = self.calendar.now_ps, step_ps
        if self.is_busy or not self.waiting:
            return 0
        token = <Token> self.waiting[0]
        output = <OutputTile> token.output
        if output.accumulator is None:
            # The first step of an output tile reserves the accumulator, the others add to it.
            if not self.accumulators.filled:
                return 0
            output.take_accumulator(self.registers)
        self.waiting.popleft()
        self.is_busy = True
        self.count_stall(token, now_ps)
        self.request(token, now_ps)
        step_ps = (<StepShape> token.shape).step_ps
        self.busy_ps += step_ps
        self.free_ps = now_ps + step_ps
        event.actor, event.tail_ps = self.number, now_ps
        return self.calendar.insert(self.free_ps, NORMAL, event, token)

    cdef int request(self, Token token, long long now_ps) except -1:
        """Note since when a step has waited, and for what: see `ReferenceGemmSteps`."""
        self.requested_ps, self.waited_for = token.arrived_ps, FOR_ENGINE
        if token.arrived_ps == now_ps:
            self.requested_ps = max(self.free_ps, token.submitted_ps)
            self.waited_for = FOR_OPERAND
        return 0

    cdef int count_stall(self, Token token, long long now_ps) except -1:
        """See `stall_before`."""
        cdef long long idle_ps = now_ps - max(self.free_ps, token.submitted_ps)
        cdef long long late_ps = token.ready_ps - max(token.open_ps, token.submitted_ps)
        cdef long long store_ps, dma_ps
        if idle_ps:
            store_ps = (now_ps - token.fetched_ps) + (token.fetch_ps - token.turn_ps)
            store_ps = min(idle_ps, store_ps)
            dma_ps = min(idle_ps - store_ps, max(late_ps, 0))
            self.stall_store_ps += store_ps
            self.stall_dma_ps += dma_ps
            self.stall_fetch_ps += idle_ps - store_ps - dma_ps
        return 0

    cdef int end(self, Token token, long long start_ps) except -1:
        cdef OutputTile output = <OutputTile> token.output
        cdef StepShape shape = <StepShape> token.shape
        cdef Operation about
        self.compute(token, output)
        about.start_ps, about.end_ps = start_ps, self.free_ps
        about.cube, about.pe, about.flow_end = self.cube, self.pe, False
        about.address, about.nbytes = output.address, shape.output_bytes
        about.checksum = output.checksum()
        about.requested_ps, about.waited_for = self.requested_ps, self.waited_for
        self.log.enter(
            "pe_gemm", "gemm", &about, output.shape, shape.accumulator, (),
            self.inputs_of(token, output, shape), None, None, None,
        )
        self.tiles += 1
        self.macs += shape.macs
        self.is_busy = False
        # Free the set before the token goes on: the fetch of a later step may begin in this event.
        self.sets.free(token.registers)
        token.go_on()
        return self.begin()

    cdef int compute(self, Token token, OutputTile output) except -1:
        """Add the product of a step to its output tile."""
        cdef TileData a = <TileData> token.a, b = <TileData> token.b
        if self.products is not None and self.products.add_step(output, a, b, token.first):
            return 0
        if a.data is not None and b.data is not None:
            output.data = self.accumulated(output.data, a.data, b.data)
        return 0

    cdef tuple inputs_of(self, Token token, OutputTile output, StepShape shape):
        """The operands in registers, and the accumulator where the sum begins before this step."""
        cdef bint begins = token.first and output.start is None
        key = (token.registers, -1 if begins else output.accumulator)
        found = shape.inputs.get(key)
        if found is None:
            found = shape.inputs[key] = self.operands(token, begins)
        return <tuple> found
