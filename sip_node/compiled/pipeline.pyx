"""The parts that the steps of a matrix product pass, as classes in C."""

from sip_node.chip.pe.dma cimport PeDma
from sip_node.chip.fabric.egress_stream cimport EgressStream
from sip_node.chip.fabric.hops cimport Hops, Route, in_c
from sip_node.chip.memory.memory_packets cimport MemoryPackets
from sip_node.chip.memory.memory_port cimport MemoryPort
from sip_node.chip.memory.hbm cimport PseudoChannels as StripedChannels
from sip_node.chip.memory.transaction_queue cimport AccessQueue
from sip_node.chip.pe.read_window cimport ReadWindow
from sip_node.chip.fabric.server cimport FifoServer
from sip_node.compiled.state_walk import NotClosed
from sip_node.chip.pe.step_tokens cimport StepTokens
from sip_node.chip.pe.tile_dma cimport TileLoad
from sip_node.chip.pe.fetch_store cimport FetchPort, StorePort
from sip_node.chip.pe.gemm cimport PeGemm


cdef class Pipeline:
    """The parts that the steps of a product pass, at the PE with this DMA engine."""

    def __init__(self, composite, StepTokens source not None, PeDma dma not None,
                 TileLoad load not None, FetchPort fetch not None, PeGemm gemm not None,
                 StorePort store not None, buffers, Hops fabric not None, memory_nodes):
        cdef MemoryPackets memory
        cdef Route route
        self.composite, self.source, self.dma, self.load = composite, source, dma, load
        self.fetch, self.gemm, self.store, self.fabric = fetch, gemm, store, fabric
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
            if not isinstance((<AccessQueue> memory.service).channels, StripedChannels):
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
        found = {id(each): each.bins for each in self.servers if each.bins is not None}
        return list(found.values())

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
