"""A matrix product in flight for the walk over its state: its parts, and its tiles in memory."""

import numpy as np

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.list cimport PyList_GET_ITEM
from sip_node.chip.mapping.strided_block import layout_of
from sip_node.chip.fabric.egress_stream cimport EgressStream
from sip_node.chip.fabric.hops cimport Route, in_c
from sip_node.chip.fabric.server cimport FifoServer
from sip_node.chip.memory.hbm cimport PseudoChannels
from sip_node.chip.memory.memory cimport Memory
from sip_node.chip.memory.memory_port cimport MemoryPort
from sip_node.chip.memory.transaction_queue cimport AccessQueue
from sip_node.chip.pe.compute.operand_tiles cimport TileForm
from sip_node.chip.pe.read_window cimport ReadWindow
from sip_node.chip.pe.compute.tile_token cimport OutputTile, StepTokens
from sip_node.kernel.checksums cimport crc32_of
from sip_node.kernel.tile_data cimport loaded_tile
from sip_node.compiled.state_walk import NotClosed

cdef enum:
    # The bytes of tiles that are kept to be used again.
    MOST_KEPT_BYTES = 0x8000000


cdef class Pipeline:
    """The parts that the steps of a product pass, of `ProductParts` of a PE."""

    def __init__(self, composite, StepTokens source not None, parts, memory_nodes):
        cdef PeDma dma = parts.dma
        cdef FetchPort fetch = parts.fetch
        cdef StorePort store = parts.store
        cdef Hops fabric = parts.fabric
        cdef MemoryPackets memory
        cdef Route route
        self.composite, self.source, self.dma, self.load = composite, source, dma, parts.load
        self.fetch, self.gemm, self.store, self.fabric = fetch, parts.gemm, store, fabric
        buffers = parts.buffers
        self.slots = [buffers.operands, buffers.results, fetch._sets, fetch._accumulators]
        self.servers = [dma.tcm.server, fetch.server, store.server]
        self.memories = []
        for node in memory_nodes:
            if not isinstance(fabric.endpoints[node], MemoryPackets):
                raise NotClosed("a memory that nothing has reached yet, or in Python")
            memory = fabric.endpoints[node]
            if not isinstance(memory.store, MemoryPort):
                raise NotClosed("a port of a memory in Python")
            if not isinstance(memory.service, AccessQueue) or memory.on_service is not None:
                raise NotClosed("a memory with a queue of its own")
            if not isinstance((<AccessQueue> memory.service).channels, PseudoChannels):
                raise NotClosed("a memory with channels of its own")
            self.memories.append(memory)
            self.servers += (<AccessQueue> memory.service).channels.channels
            for source_node, target_node in ((dma.node, node), (node, dma.node)):
                route = fabric.route(source_node, target_node)
                for index in range(route.length):
                    link = fabric.links[route.links[index]]
                    if not in_c(link):
                        raise NotClosed("a link in Python")
                    self.servers.append(link)
        if not all(isinstance(each, FifoServer) for each in self.servers):
            raise NotClosed("a port in Python")

    def bins(self):
        """The loads of its servers over time, in a run with records."""
        by_object = {id(each): each.bins for each in self.servers if each.bins is not None}
        return list(by_object.values())

    cdef dict actors(self):
        """The actors of its events, by their numbers in the calendar."""
        cdef PeDma dma = self.dma
        cdef MemoryPackets memory
        parts = {
            dma.number: dma, self.fetch.events.number: self.fetch,
            self.gemm.events.number: self.gemm, self.store.events.number: self.store,
            (<ReadWindow> dma.window).number: dma.window,
            (<EgressStream> dma.stream).number: dma.stream, self.fabric.number: self.fabric,
        }
        for memory in self.memories:
            parts[memory.number] = memory
            parts[(<AccessQueue> memory.service).number] = memory.service
        return parts


cdef class ProductTiles:
    """The tiles of the product of `pipeline`. Raises `NotClosed` unless each is one block."""

    def __init__(self, Pipeline pipeline not None):
        self.pipeline = pipeline
        self.depths = len(pipeline.source.depths)
        self.kept = {}
        self.blocks = [
            self.block_made(output)
            for output in range(len(pipeline.source.rows) * len(pipeline.source.columns))
        ]

    cdef object tile(self, long long index, bint is_b):
        """A tile of an operand, of a step."""
        cdef StepTokens source = self.pipeline.source
        cdef Py_ssize_t depth = index % self.depths, wide = len(source.columns)
        cdef Py_ssize_t column = index // self.depths % wide, row = index // self.depths // wide
        tile = source.b.at(depth, column) if is_b else source.a.at(row, depth)
        if isinstance(tile, StreamedTile) and (<StreamedTile> tile).sip < 0:
            if (<StreamedTile> tile).inputs is None:
                raise NotClosed("a tile of several blocks")
            self.pipeline.load.locate(<StreamedTile> tile)
        return tile

    cdef object block_made(self, long long output):
        """The block in memory of an output tile."""
        cdef StepTokens source = self.pipeline.source
        cdef Py_ssize_t wide = len(source.columns)
        blocks = (<OutputTile> source.output_of(
            source.rows[output // wide], source.columns[output % wide]
        )).memory
        if len(blocks) != 1:
            raise NotClosed("an output tile of several blocks")
        return blocks[0]

    cdef object block_of(self, long long output):
        """The block in memory of an output tile."""
        return <object> PyList_GET_ITEM(self.blocks, output)

    cdef MemoryPackets memory_at(self, long long address):
        _, node = self.pipeline.dma.locate(address)
        return self.pipeline.fabric.endpoints[node]

    cdef bytes content(self, StreamedTile tile):
        """The bytes of a tile in memory; empty in a run without data."""
        cdef MemoryPackets memory = self.memory_at(tile.address)
        cdef Memory content = (<MemoryPort> memory.store).memory
        cdef long long offset = tile.address - memory.base
        if tile.rows is None:
            return content.read(offset, tile.form.nbytes)
        return content.read_rows(offset, tile.rows, 0, tile.form.nbytes)

    cdef TileData read(self, long long index, bint is_b):
        """A tile of an operand, in any of its buffers."""
        cdef TileForm form
        cdef TileData kept
        cdef bytes content
        tile = self.tile(index, is_b)
        if not isinstance(tile, StreamedTile):
            return <TileData> tile
        known = self.kept.get(tile)
        if known is not None:
            return <TileData> known
        form = (<StreamedTile> tile).form
        content = self.content(<StreamedTile> tile)
        kept = loaded_tile(
            self.pipeline.load.target(form, 0, is_b), form.dtype, form.nbytes, content,
            crc32_of(PyBytes_AS_STRING(content), PyBytes_GET_SIZE(content)),
        )
        if self.kept_bytes < MOST_KEPT_BYTES:
            self.kept_bytes += len(content)
            self.kept[tile] = kept
        return kept

    cdef TileData loaded(self, long long index, bint is_b, int buffer):
        """A tile of an operand in a buffer."""
        cdef TileData read = self.read(index, is_b)
        cdef TileForm form
        tile = self.tile(index, is_b)
        if not isinstance(tile, StreamedTile):
            return read
        form = (<StreamedTile> tile).form
        inputs = self.pipeline.load.target(form, buffer, is_b)
        return loaded_tile(inputs, form.dtype, form.nbytes, read.content, read.checksum)

    cdef int write(self, long long output, bytes content) except -1:
        """Write an output tile to memory."""
        cdef MemoryPackets memory
        cdef Memory target
        if content:
            piece = self.block_of(output)
            memory = self.memory_at(piece.address)
            target = (<MemoryPort> memory.store).memory
            total, rows = layout_of(piece)
            if rows is None:
                target.write(piece.address - memory.base, content)
            else:
                target.write_rows(piece.address - memory.base, rows, 0, content)
        return 0

    cdef long long steps_alike(self, long long first, long long period) except -1:
        """The number of steps that repeat with a period, from step `first` on."""
        cdef StepTokens source = self.pipeline.source
        cdef Py_ssize_t rows = len(source.rows), columns = len(source.columns)
        cdef Py_ssize_t depths = self.depths, row, column, depth
        numbers = {}
        a = np.empty((rows, 1, depths), np.int64)
        b = np.empty((1, columns, depths), np.int64)
        results = np.empty((rows, columns, 1), np.int64)
        for depth in range(depths):
            for row in range(rows):
                kind = self.kind_of(row * columns * depths + depth, False)
                a[row, 0, depth] = numbers.setdefault(kind, len(numbers))
            for column in range(columns):
                kind = self.kind_of(column * depths + depth, True)
                b[0, column, depth] = numbers.setdefault(kind, len(numbers))
        for row in range(rows):
            for column in range(columns):
                kind = self.kind_of_block(self.block_of(row * columns + column))
                results[row, column, 0] = numbers.setdefault(kind, len(numbers))
        alike = np.ones(max(rows * columns * depths - period, 0), bool)
        for each in (a, b, results):
            kinds = np.broadcast_to(each, (rows, columns, depths)).reshape(-1)
            alike &= kinds[period:] == kinds[:-period]
        differing = np.flatnonzero(~alike[first:])
        repeating = int(differing[0]) if len(differing) else len(alike) - first
        return first + repeating + period

    cdef object kind_of(self, long long index, bint is_b):
        """Equal for tiles of an operand that are loaded alike."""
        tile = self.tile(index, is_b)
        if isinstance(tile, StreamedTile):
            return self.kind_of_block((<StreamedTile> tile).inputs[0])
        return tile.shape, tile.nbytes

    cdef object kind_of_block(self, object block):
        """Equal for blocks that a memory serves alike."""
        cdef MemoryPackets memory = self.memory_at(block.address)
        cdef PseudoChannels channels = (<AccessQueue> memory.service).channels
        cdef long long offset = block.address - memory.base
        total, rows = layout_of(block)
        phase = offset % (channels.burst_bytes * channels.count)
        return memory.number, phase, total, rows, block.shape

