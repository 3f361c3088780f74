"""The stages through which every step of a matrix product passes, in C.

A token goes from stage to stage by their method `accept`, so a stage in Python, such as the vector
engine, stands anywhere in its route. Records are built by position: by keyword takes twice as long.
"""

from collections import deque
from zlib import crc32

from cpython.mem cimport PyMem_Free, PyMem_Malloc

from runtime.core.trace import Operand, OpRecord
from sip_node.compiled.calendar cimport Actor, Calendar, Event
from sip_node.compiled.server cimport FifoServer, Service

cdef enum:
    NORMAL = 1


cdef class Slots:
    """The twin of `ReferenceFreeList`."""

    def __cinit__(self, int count):
        cdef int index
        self.count = self.filled = count
        self.order = <int *> PyMem_Malloc(max(1, count) * sizeof(int))
        self.is_free = <char *> PyMem_Malloc(max(1, count))
        if not self.order or not self.is_free:
            raise MemoryError
        for index in range(count):
            self.order[index], self.is_free[index] = index, 1
        self.callbacks = []

    def __dealloc__(self):
        PyMem_Free(self.order)
        PyMem_Free(self.is_free)

    @property
    def available(self):
        """Whether a slot is free."""
        return self.filled > 0

    @property
    def unused(self):
        """Whether all slots are free."""
        return self.filled == self.count

    def when_freed(self, callback):
        """Call `callback` whenever a slot is freed."""
        self.callbacks.append(callback)

    def take(self):
        """Reserve a free slot; returns its index."""
        return self.reserve()

    def free(self, int index):
        """Release a slot."""
        self.release(index)

    cdef int reserve(self) except -1:
        cdef int index = self.order[self.first]
        if not self.filled:
            raise IndexError("no slot is free")
        self.first = (self.first + 1) % self.count
        self.filled -= 1
        self.is_free[index] = 0
        return index

    cdef int release(self, int index) except -1:
        assert 0 <= index < self.count and not self.is_free[index], f"slot {index} is free already"
        self.order[(self.first + self.filled) % self.count] = index
        self.filled += 1
        self.is_free[index] = 1
        for callback in self.callbacks:
            callback()
        return 0


cdef class Token:
    """The twin of `ReferenceTileToken`."""

    def __init__(self, gemm, tile, shape, sources, output, tuple route not None,
                 long long submitted_ps, int buffer):
        self.gemm, self.tile, self.shape, self.sources = gemm, tile, shape, sources
        self.output, self.route = output, route
        self.submitted_ps, self.buffer = submitted_ps, buffer
        self.first, self.last = tile.first, tile.last
        self.loading = 2

    def advance(self):
        """Go to the next stage of the route, if there is one."""
        self.go_on()

    cdef int go_on(self) except -1:
        cdef int passed = self.passed
        if passed < len(self.route):
            self.passed = passed + 1
            self.route[passed].accept(self)
        return 0


cdef class LoadedOperand:
    """Called with the bytes of an operand: it is in TCM."""

    def __call__(self, read):
        cdef Token token = self.token
        data = self.stage.data_of(self.tile, self.block, read.value)
        if self.is_b:
            token.b = data
        else:
            token.a = data
        token.loading -= 1
        if not token.loading:
            self.stage.pass_on(token)


cdef class LoadStage:
    """The twin of `ReferenceTileLoad`: `addresses` are those of the buffers of both operands."""

    def __init__(self, Calendar engine not None, read, addresses, staged, data_of, read_pieces):
        self.calendar, self.read, self.addresses = engine, read, addresses
        self.staged, self.data_of, self.read_pieces = staged, data_of, read_pieces
        self.loading = deque()

    def accept(self, Token token not None):
        """Take a token that has a buffer for each operand."""
        self.loading.append(token)
        a, b = token.sources
        if token.tile_a is None:
            rows, depth, columns, _, _ = token.tile
            token.tile_a, token.tile_b = a.at(rows, depth), b.at(depth, columns)
        self.load(token, a, token.tile_a, False)
        self.load(token, b, token.tile_b, True)
        if not token.loading:
            # Both are staged, so they are ready at once.
            self.pass_on(token)

    cdef int load(self, Token token, object source, object tile, bint is_b) except -1:
        cdef LoadedOperand loaded
        if type(source) is self.staged:
            if is_b:
                token.b = tile
            else:
                token.a = tile
            token.loading -= 1
            return 0
        shape, dtype, _, pieces = tile
        loaded = LoadedOperand.__new__(LoadedOperand)
        loaded.stage, loaded.token, loaded.tile, loaded.is_b = self, token, tile, is_b
        loaded.block = Operand(self.addresses[token.buffer][is_b], shape, dtype.name)
        if len(pieces) == 1:
            self.read(pieces[0], loaded.block).then(loaded)
        else:
            self.read_pieces(pieces, loaded.block, loaded)
        return 0

    cdef int pass_on(self, Token token) except -1:
        """The operands of a token are in TCM: it leaves behind those before it."""
        token.ready_ps = self.calendar.now_ps
        # In order: a token whose data is late holds back those behind it that are complete.
        while self.loading and not (<Token> self.loading[0]).loading:
            (<Token> self.loading.popleft()).go_on()
        return 0


cdef class FetchStage(Actor):
    """The twin of `ReferenceFetchPort`."""

    def __init__(self, Calendar engine not None, server, record, at, registers, Slots buffers):
        self.calendar, self.number = engine, engine.enlist(self)
        self.server, self.record, self.cube, self.pe = server, record, at.cube, at.pe
        self.registers, self.buffers = registers, buffers
        self.sets, self.accumulators = registers.sets, registers.accumulators
        self.addresses = [(registers.a(each), registers.b(each)) for each in range(registers.SETS)]
        self.waiting = deque()
        self.open_ps, self.turn_ps = 0, -1
        registers.sets.when_freed(self.go_on)
        registers.accumulators.when_freed(self.go_on)

    def accept(self, Token token not None):
        """Take a token whose operands are in TCM."""
        self.waiting.append(token)
        self.begin()

    def go_on(self):
        """A register set or an accumulator is free."""
        self.begin()

    cdef int act(self, Event event, object subject) except -1:
        return self.end(<Token> (<tuple> subject)[0], <list> (<tuple> subject)[1])

    cdef int begin(self) except -1:
        """Begin the next fetch if port, register set, operands and accumulator are there."""
        cdef Token token
        cdef Event event
        cdef long long end_ps = 0, now_ps = self.calendar.now_ps
        cdef bint begins
        cdef list records = []
        if self.is_busy or not self.sets.filled:
            return 0
        if self.open_ps < 0:
            self.open_ps = now_ps
        if not self.waiting:
            return 0
        if self.turn_ps < 0:
            self.turn_ps = now_ps
        token = <Token> self.waiting[0]
        output = token.output
        begins = token.first and output.start is not None
        if begins:
            # A sum with an initial value needs its accumulator before that value is fetched.
            if not self.accumulators.filled:
                return 0
            output.take_accumulator(self.registers)
            output.data = output.start.data
        self.waiting.popleft()
        self.is_busy = True
        token.open_ps, token.turn_ps, token.fetch_ps = self.open_ps, self.turn_ps, now_ps
        self.open_ps = self.turn_ps = -1
        token.registers = self.sets.reserve()
        address_a, address_b = self.addresses[token.registers]
        if begins:
            records.append(self.transfer(output.start, output.address, &end_ps))
        records.append(self.transfer(token.a, address_a, &end_ps))
        records.append(self.transfer(token.b, address_b, &end_ps))
        if token.last and output.bias is not None:
            # With the last step, which is when the epilogue needs it: the row is occupied briefly.
            output.bias_row = self.registers.biases.take()
            address = self.registers.bias(output.bias_row)
            records.append(self.transfer(output.bias, address, &end_ps))
        event.actor = self.number
        return self.calendar.insert(end_ps, NORMAL, event, (token, records))

    cdef object transfer(self, object tile, object address, long long *end_ps):
        """The record of the fetch of a tile; reserves the port."""
        cdef Service service
        cdef long long now_ps = self.calendar.now_ps
        block, nbytes = tile.block, tile.nbytes
        if isinstance(self.server, FifoServer):
            (<FifoServer> self.server).serve(now_ps, now_ps, nbytes, &service)
        else:
            service.start_ps, service.tail_ps = self.server.reserve(now_ps, now_ps, nbytes)
        end_ps[0] = service.tail_ps
        return OpRecord(
            "pe_fetch_store", "fetch", service.start_ps, service.tail_ps, self.cube, self.pe,
            address, nbytes, block.shape, block.dtype, None, False, (block,), (), None,
            tile.checksum,
        )

    cdef int end(self, Token token, list records) except -1:
        for each in records:
            self.record(each)
        self.records += len(records)
        self.is_busy = False
        token.fetched_ps = self.calendar.now_ps
        token.go_on()
        # The operands are in registers, so the next DMA may overwrite their buffers in TCM.
        self.buffers.release(token.buffer)
        return self.begin()


cdef class GemmStage(Actor):
    """The twin of `ReferenceGemmSteps`."""

    def __init__(self, Calendar engine not None, record, at, registers):
        self.calendar, self.number = engine, engine.enlist(self)
        self.record, self.cube, self.pe, self.registers = record, at.cube, at.pe, registers
        self.sets, self.accumulators = registers.sets, registers.accumulators
        self.waiting, self.macs = deque(), 0
        registers.accumulators.when_freed(self.go_on)

    def accept(self, Token token not None):
        """Take a token whose operands are in registers."""
        self.waiting.append(token)
        self.begin()

    def go_on(self):
        """An accumulator is free."""
        self.begin()

    cdef int act(self, Event event, object subject) except -1:
        return self.end(<Token> subject, event.tail_ps)

    cdef int begin(self) except -1:
        cdef Token token
        cdef Event event
        cdef long long now_ps = self.calendar.now_ps, step_ps
        if self.is_busy or not self.waiting:
            return 0
        token = <Token> self.waiting[0]
        if token.output.accumulator is None:
            # The first step of an output tile reserves the accumulator, the others add to it.
            if not self.accumulators.filled:
                return 0
            token.output.take_accumulator(self.registers)
        self.waiting.popleft()
        self.is_busy = True
        self.count_stall(token, now_ps)
        step_ps = token.shape.step_ps
        self.busy_ps += step_ps
        self.free_ps = now_ps + step_ps
        event.actor, event.tail_ps = self.number, now_ps
        return self.calendar.insert(self.free_ps, NORMAL, event, token)

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
        output, shape = token.output, token.shape
        a, b = token.a.data, token.b.data
        if a is not None and b is not None:
            output.data = self.accumulated(output.data, a, b)
        data = output.data
        self.record(
            OpRecord(
                "pe_gemm", "gemm", start_ps, self.free_ps, self.cube, self.pe, output.address,
                shape.output_bytes, output.shape, shape.accumulator, None, False,
                self.inputs_of(token, output, shape), (), None,
                0 if data is None else crc32(data),
            )
        )
        self.tiles += 1
        self.macs += shape.macs
        self.is_busy = False
        # Free the set before the token goes on: the fetch of a later step may begin in this event.
        self.sets.release(token.registers)
        token.go_on()
        return self.begin()

    cdef object inputs_of(self, Token token, object output, object shape):
        """The operands in registers, and the accumulator where the sum begins before this step."""
        cdef bint begins = token.first and output.start is None
        key = (token.registers, -1 if begins else output.address)
        inputs = (<dict> shape.inputs).get(key)
        if inputs is None:
            inputs = shape.inputs[key] = self.operands(token, begins)
        return inputs
