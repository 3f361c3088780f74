"""The PE_CPU: carries out orders of the M_CPU and runs kernels, one at a time."""

from contextvars import copy_context

from runtime.errors import IpcqInstallError
from runtime.language.context import current_pe
from runtime.requests import PeDmaMsg
from runtime.trace import OpRecord
from runtime.wire.messages import BlockedPe
from sip_node.completion import Completion
from sip_node.components.commands import Done, PeCommand, PeInstall, PeLaunch, PeMap
from sip_node.components.kernel_run import Engines, KernelRun
from sip_node.components.packet import Packet
from sip_node.components.surroundings import Surroundings
from sip_node.components.wiring import PeWiring
from sip_node.failure import ProgramRaised
from sip_node.program import Program
from sip_node.rows import bytes_at


class PeCpu:
    """The CPU of one PE."""

    def __init__(self, chip: Surroundings, wiring: PeWiring, engines: Engines) -> None:
        self._chip, self._wiring, self._engines = chip, wiring, engines
        self._port = chip.cpu_port(wiring.node)
        self._at = (wiring.place.cube, wiring.place.pe)
        self.running: KernelRun | None = None

    def ordered(self, packet: Packet) -> None:
        """An order of the M_CPU is there."""
        assert isinstance(packet.body, PeCommand)
        order = packet.body.order
        match order:
            case PeMap():
                self._engines.mmu.map(order.extents)
                self._port.answer(packet, Done())
            case PeInstall():
                self._install(order)
                self._port.answer(packet, Done())
            case PeDmaMsg():
                self._transfer(packet, order)
            case PeLaunch():
                start_ps = max(order.start_ps, self._wiring.engine.now_ps)
                self._wiring.engine.at(start_ps, self._start, packet, order)

    def blocked(self) -> BlockedPe | None:
        """What the kernel waits for, if it waits for a peer."""
        return None if self.running is None else self.running.blocked

    def _transfer(self, packet: Packet, order: PeDmaMsg) -> None:
        began_ps = self._wiring.engine.now_ps
        sip, _ = self._wiring.locate(order.address)
        if sip != self._wiring.place.sip and not self._chip.remote_dma:
            problem = f"DMA of {self._wiring.place} to sip {sip}: the run was not declared to have DMA between SIPs"
            raise ProgramRaised(self._chip.sip, RuntimeError(problem))

        def finished(_: Completion[bytes]) -> None:
            self._port.answer(packet, Done(began_ps, self._wiring.engine.now_ps))

        tcm = self._wiring.tcm
        far, near = bytes_at(order.address, order.nbytes), bytes_at(tcm.base + order.tcm_offset, order.nbytes)
        if order.operation == "read":
            self._engines.dma.read(far, near).then(finished)
        else:
            self._engines.dma.write(near, far, tcm.read(near)).then(finished)

    def _install(self, order: PeInstall) -> None:
        ipcq, place = self._engines.ipcq, self._wiring.place
        for pair in order.queues:
            # Which SIPs forward for others, and so what each can promise, was worked out from the files before the run.
            if pair.peer.sip != place.sip and (place.sip, pair.peer.sip) not in self._chip.connected:
                raise IpcqInstallError(place, f"direction {pair.direction}: no algorithm of the files joins it to {pair.peer}")
        ipcq.install(order.queues)
        for pair in order.queues:
            self._chip.watch_ring(pair.rx_base, pair.ring_bytes, self._wiring.node)
        if ipcq.reaches_other_sips:
            self._chip.outlook.reaches_out(self._at)

    def _start(self, packet: Packet, launch: PeLaunch) -> None:
        run = KernelRun(self._chip, self._wiring, self._engines, launch)
        context = copy_context()
        context.run(current_pe.set, run)
        program = Program(run.execute, context)
        run.program = program
        self.running = run
        start_ps = self._wiring.engine.now_ps

        def ended(finished: Completion[object]) -> None:
            self._ended(packet, launch, start_ps, finished)

        program.finished.then(ended)
        program.start()

    def _ended(self, packet: Packet, launch: PeLaunch, start_ps: int, finished: Completion[object]) -> None:
        assert self.running is not None
        self.running.close()
        self.running = None
        self._chip.outlook.ended(self._at)
        if finished.error is not None:
            raise ProgramRaised(self._chip.sip, finished.error)
        now_ps, place = self._wiring.engine.now_ps, self._wiring.place
        self._wiring.record(OpRecord("pe_cpu", f"kernel {launch.name}", start_ps, now_ps, place.cube, place.pe))
        self._port.answer(packet, Done(start_ps, now_ps))
