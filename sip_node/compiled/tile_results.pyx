"""The stages of a result: its store to TCM, and the DMA to memory, in C.

See `StorePort` in `sip_node.chip.pe.fetch_store` and `TileWrite` in `sip_node.chip.pe.tile_dma`.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE

from runtime.core.trace import Operand
from sip_node.compiled.calendar cimport Calendar, Event
from sip_node.compiled.checksum cimport crc32_of
from sip_node.chip.op_log cimport OpLog
from sip_node.compiled.operation cimport FOR_ENGINE, Operation
from sip_node.compiled.service cimport Service
from sip_node.compiled.tile_token cimport StepShape

cdef enum:
    NORMAL = 1


cdef class StoreStage(PortStage):
    """The twin of `ReferenceStorePort`."""

    def __init__(self, Calendar engine not None, server, OpLog log not None, at, registers,
                 buffers, tcm, Memory memory, finish):
        self.join(engine, log, at)
        self.server, self.tcm, self.memory, self.memory_base = server, tcm, memory, tcm.base
        self.buffers, self.blocks, self.finish = buffers, {}, finish
        self.accumulators, self.results = registers.accumulators, buffers.results
        self.results.when_freed(self.go_on)

    cdef int act(self, Event event, object subject) except -1:
        return self.end(<Token> subject)

    cdef int begin(self) except -1:
        cdef Token token
        cdef OutputTile output
        cdef Event event
        cdef Service service
        if self.is_busy or not self.waiting:
            return 0
        token = <Token> self.waiting[0]
        output = <OutputTile> token.output
        if not self.find_target(token, output):
            return 0
        self.waiting.popleft()
        self.is_busy = True
        self.nbytes = output.shape[0] * output.shape[1] * token.gemm.dtype.itemsize
        self.serve(self.nbytes, &service)
        self.start_ps, event.actor = service.start_ps, self.number
        return self.calendar.insert(service.tail_ps, NORMAL, event, token)

    cdef bint find_target(self, Token token, OutputTile output) except -1:
        """Part of a value, or a buffer; returns False while no buffer is free."""
        self.target = output.target
        if self.target is None:
            if not self.results.filled:
                return False
            output.buffer = self.results.take()
            self.target = output.stored = self.block(output, token.gemm.dtype.name)
        return True

    cdef object block(self, OutputTile output, str element):
        """The block of a buffer; most results have the shape of the last one in it."""
        cdef tuple key = (output.buffer, output.shape, element)
        found = self.blocks.get(key)
        if found is None:
            found = self.blocks[key] = Operand(
                self.buffers.result(output.buffer), output.shape, element
            )
        return found

    cdef int end(self, Token token) except -1:
        cdef OutputTile output = <OutputTile> token.output
        cdef StepShape shape = <StepShape> token.shape
        cdef Operation about
        cdef bytes content = b""
        target, data = self.target, output.data
        if data is not None:
            data = self.finish(data, None, None, token.gemm.dtype)
            output.data, content = data, data.tobytes()
            self.write(content)
        output.content = content
        about.start_ps, about.end_ps = self.start_ps, self.calendar.now_ps
        about.cube, about.pe, about.flow_end = self.cube, self.pe, False
        about.address, about.nbytes = target.address, self.nbytes
        about.checksum = crc32_of(PyBytes_AS_STRING(content), PyBytes_GET_SIZE(content))
        about.requested_ps, about.waited_for = token.arrived_ps, FOR_ENGINE
        self.log.enter(
            "pe_fetch_store", "store", &about, target.shape, target.dtype, target.strides,
            (output.registers(shape.accumulator),), None, None, None,
        )
        self.records += 1
        self.is_busy = False
        # All of the tile is in TCM, so another output tile may sum in its accumulator.
        self.accumulators.free(output.accumulator)
        token.go_on()
        return self.begin()

    cdef int write(self, bytes content) except -1:
        """Write a result to TCM."""
        if self.memory is not None and not self.target.strides:
            return self.memory.write(self.target.address - self.memory_base, content)
        self.tcm.write(self.target, content)
        return 0


cdef class TileWriteRequest(DmaRequest):
    """The request that writes a result of one piece."""

    cdef void complete(self) except *:
        self.stage.written(self.token)


cdef class WrittenResult:
    """Called when the memory has acknowledged all pieces of a result."""

    def __init__(self, WriteStage stage not None, Token token not None):
        self.stage, self.token = stage, token

    def __call__(self, _acknowledged):
        self.stage.written(self.token)


cdef class WriteStage(Stage):
    """The twin of `ReferenceTileWrite`, whose `write_pieces` it has for results in pieces."""

    def __init__(self, dma, buffers, write_pieces):
        self.results, self.write_pieces = buffers.results, write_pieces
        if isinstance(dma, PeDma) and type(dma).write is PeDma.write:
            self.dma = dma

    cdef int take(self, Token token) except -1:
        """Take a token whose result is in a buffer."""
        cdef OutputTile output = <OutputTile> token.output
        cdef TileWriteRequest request
        if self.dma is None or len(output.memory) != 1:
            writing = self.write_pieces(output.memory, output.stored, output.content)
            writing.then(WrittenResult(self, token))
            return 0
        request = TileWriteRequest.__new__(TileWriteRequest)
        request.stage, request.token, request.data = self, token, output.content
        request.inputs, request.target = (output.stored,), output.memory[0]
        self.dma.write_to(request)
        return 0

    cdef int written(self, Token token) except -1:
        """The memory has acknowledged all of a result."""
        self.results.free((<OutputTile> token.output).buffer)
        return token.go_on()
