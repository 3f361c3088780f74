"""A processing element: its engines, and its endpoint on the fabric."""

from runtime.core.coordinates import PeCoordinates
from runtime.core.errors import InvariantError
from runtime.model.allocation import tile_buffer_offset
from runtime.wire.reports import BlockedPe
from sip_node.chip.context import ChipContext
from sip_node.chip.fabric.packet import Kind, Packet
from sip_node.chip.fabric.packet_switch import PacketSwitch
from sip_node.chip.pe.compute.fetch_store import PeFetchStore
from sip_node.chip.pe.compute.gemm import PeGemm
from sip_node.chip.pe.compute.math import PeMath
from sip_node.chip.pe.compute.scheduler import PeScheduler
from sip_node.chip.pe.compute.tile_buffers import RegisterFile, TileBuffers
from sip_node.chip.pe.context import PeContext
from sip_node.chip.pe.cpu import PeCpu
from sip_node.chip.pe.dma import PeDma
from sip_node.chip.pe.ipcq import PeIpcq
from sip_node.chip.pe.mmu import PeMmu
from sip_node.chip.pe.tcm import PeTcm


class Pe:
    """The endpoint of a PE: passes every packet that arrives to the engine that it is for."""

    def __init__(self, chip: ChipContext, node: int) -> None:
        location = chip.graph.nodes[node]
        topology = chip.topology
        self.chip = chip
        self.coordinates = coordinates = PeCoordinates(chip.sip, location.cube, location.pe)
        engines = chip.components.engines
        self.tcm: PeTcm = engines["pe_tcm"](chip, node)
        self.context = context = PeContext(
            engine=chip.engine,
            fabric=chip.fabric,
            topology=topology,
            coordinates=coordinates,
            node=node,
            tcm=self.tcm,
            log=chip.log,
            record=chip.log.add,
            locate=chip.memory_map.locate,
            locate_pe=lambda peer: (peer.sip, chip.graph.pe(peer.cube, peer.pe)),
            next_flow=chip.flows.next,
            forward=chip.forward,
        )
        self.dma: PeDma = engines["pe_dma"](context)
        self.mmu: PeMmu = engines["pe_mmu"]()
        self.ipcq: PeIpcq = engines["pe_ipcq"](context)
        self.registers = RegisterFile(
            chip.addresses.pe_regfile_addr(*coordinates, 0), topology.tile
        )
        self.buffers = TileBuffers(
            chip.addresses.pe_tcm_addr(*coordinates, tile_buffer_offset(topology)),
            topology.tile,
            topology.pe.scheduler.tile_buffers,
        )
        # A register or buffer that becomes free starts the stages in the order of their
        # construction: the fetch port before the matrix engine.
        self.fetch_store: PeFetchStore = engines["pe_fetch_store"](
            context, self.registers, self.buffers
        )
        self.gemm: PeGemm = engines["pe_gemm"](context, self.registers)
        self.math: PeMath = engines["pe_math"](context, self.fetch_store, self.registers)
        self.scheduler: PeScheduler = engines["pe_scheduler"](
            context, self.dma, self.fetch_store, self.gemm, self.math, self.buffers
        )
        self.cpu: PeCpu = engines["pe_cpu"](chip, context, self.dma, self.mmu, self.ipcq)
        self.endpoint = PacketSwitch(
            {
                Kind.WRITE: self.tcm.port.accept,
                Kind.READ: self.tcm.port.accept,
                Kind.IPCQ_DATA: self.tcm.port.accept,
                Kind.ACK: self.dma.acknowledged,
                Kind.DATA: self.dma.landing.accept,
                Kind.OLD: self.dma.landing.accept,
                Kind.IPCQ_ARRIVAL: self.ipcq.accept,
                Kind.IPCQ_CREDIT: self.ipcq.accept,
                Kind.IPCQ_READY: self.ipcq.accept,
                Kind.CONTROL: self.cpu.accept,
            }
        )
        """The endpoint of the PE on the fabric, for a class that does not override `accept`."""

    def accept(self, packet: Packet, tail_ps: int) -> None:
        """Pass a packet to the engine that it is for."""
        self.endpoint.accept(packet, tail_ps)

    def blocked(self) -> tuple[BlockedPe, ...]:
        """The wait of every kernel on this PE that waits for a peer."""
        return self.cpu.blocked()

    def check_idle(self) -> None:
        """Check after a run that nothing runs or is in flight, and that all resources are free."""
        owner = str(self.coordinates)
        if self.cpu.running or self.dma.in_flight:
            raise InvariantError(
                owner, f"at the end {self.dma.in_flight} DMA requests are in flight"
            )
        if self.scheduler.in_flight:
            raise InvariantError(
                owner, f"at the end {self.scheduler.in_flight} matrix products are in flight"
            )
        if not (self.registers.unused and self.buffers.unused):
            raise InvariantError(owner, "at the end registers or tile buffers are in use")
        self.ipcq.check_idle()

    def check_busy(self) -> None:
        """Check that no engine was busy for longer than the run, that for GEMM with its stalls."""
        gemm, now_ps = self.gemm, self.chip.engine.now_ps
        stalls_ps = gemm.stall_dma_ps + gemm.stall_fetch_ps + gemm.stall_store_ps
        times = {"pe_gemm": gemm.busy_ps + stalls_ps, "pe_math": self.math.busy_ps}
        times |= {
            server.name: server.busy_ps for server in (self.tcm.server, *self.fetch_store.ports)
        }
        for name, busy_ps in times.items():
            if busy_ps > now_ps:
                raise InvariantError(
                    str(self.coordinates), f"{name}: busy {busy_ps} ps of {now_ps} ps"
                )
