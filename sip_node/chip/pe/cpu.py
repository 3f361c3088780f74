"""The PE_CPU: carries out the commands of the M_CPU, and runs kernels.

It has three hardware threads: `kernels` and `collectives` run one kernel at a time, `transfers` all
receives that are posted and one send. Each kernel issues commands as if it were alone; the engines
serve the commands of all in the order of their arrival. So collectives and transfers overlap with
the kernels of the compute stream, and compete with them for engines.
"""

from functools import partial
from typing import Any

from runtime.core.requests import HardwareThread, PeDmaMsg
from runtime.core.run_tables import Cause
from runtime.core.trace import OpRecord
from runtime.wire.reports import BlockedPe
from sip_node.chip.completion import AnyCompletion, Completion, Continuation
from sip_node.chip.context import ChipContext
from sip_node.chip.fabric.packet import Packet
from sip_node.chip.host.commands import CommandDone, PeInstall, PeMap
from sip_node.chip.host.cpu_port import CpuPort
from sip_node.chip.kernel import (
    BarrierSignal,
    LaunchBarrier,
    PeLaunch,
    ProgramRaised,
    RunningKernel,
)
from sip_node.chip.mapping.strided_block import bytes_at
from sip_node.chip.pe.context import PeContext
from sip_node.chip.pe.dma import PeDma
from sip_node.chip.pe.ipcq import PeIpcq
from sip_node.chip.pe.mmu import PeMmu
from sip_node.kernel.component import Component

RECORDED_AS: dict[HardwareThread, str] = {
    "kernels": "pe_cpu",
    "collectives": "pe_cpu.collective",
    "transfers": "pe_cpu.transfer",
}
"""The component of each thread in the op log: their runs overlap, so they need a row each."""

# What an event goes on with.
_ARRIVED, _BEGINS = range(2)


class KernelRun(Continuation):
    """A kernel from the start time of its launch to its end, at which it continues."""

    def __init__(
        self, cpu: "PeCpu", command: Packet, launch: PeLaunch, start_ps: int, received_ps: int
    ) -> None:
        self.cpu, self.command, self.launch = cpu, command, launch
        self.start_ps, self.received_ps = start_ps, received_ps

    def resume(self, done: Any) -> None:
        """The kernel has ended."""
        self.cpu.ended(self, done.error)


class PeCpu(Component):
    """The CPU of one PE."""

    def __init__(
        self, chip: ChipContext, context: PeContext, dma: PeDma, mmu: PeMmu, ipcq: PeIpcq
    ) -> None:
        self.join(chip.engine)
        self._chip, self._context = chip, context
        self._dma, self._mmu, self._ipcq = dma, mmu, ipcq
        self._port = CpuPort(chip, context.node)
        self._pe = (context.coordinates.cube, context.coordinates.pe)
        # By thread, and for transfers by message: a thread of the others runs one kernel at a time.
        self._running: dict[tuple[HardwareThread, str], RunningKernel] = {}
        # The kernels that wait in the barriers of their launches.
        self._barriers: dict[LaunchBarrier, Completion[None]] = {}

    def accept(self, packet: Packet, tail_ps: int) -> None:
        """Carry out a command of the M_CPU when its last byte arrives, at `tail_ps`."""
        # Only data is cut through.
        self.later(tail_ps, _ARRIVED, packet)

    def proceed(self, step: int, subject: Any) -> None:
        """A command has arrived, or the launch of a (packet, time of arrival) begins."""
        if step == _BEGINS:
            packet, received_ps = subject
            self._begin(packet, packet.transfer.body, received_ps)
            return
        self._carry_out(subject)

    def _carry_out(self, packet: Packet) -> None:
        """A command has arrived."""
        order: Any = packet.transfer.body
        if isinstance(order, PeLaunch):
            self._reserve_queues(order, order.name)
            # All PEs of the launch start at its stamp. A command that contention has delayed
            # for longer than the margin starts at once.
            now_ps = self.engine.now_ps
            start_ps = max(order.start_ps, now_ps)
            self.later(start_ps, _BEGINS, (packet, now_ps))
        elif isinstance(order, PeMap):
            self._mmu.map(order.run)
            self._port.answer(packet, CommandDone())
        elif isinstance(order, PeInstall):
            self._install(order)
            self._port.answer(packet, CommandDone())
        elif isinstance(order, PeDmaMsg):
            self._transfer(packet, order)
        else:
            assert isinstance(order, BarrierSignal), f"{order!r} is no command for a PE"
            del order.barrier.waiting[self._pe]
            self._barriers.pop(order.barrier).complete(None)

    @property
    def running(self) -> int:
        """The number of kernels that run."""
        return len(self._running)

    def blocked(self) -> tuple[BlockedPe, ...]:
        """The wait of every kernel that waits for a peer, in the order of the threads.

        Without transfers: they wait for calls of another rank, which the ranks report.
        """
        return tuple(wait for kernel in self._kernels if (wait := kernel.blocked()) is not None)

    def oldest_wait(self) -> tuple[int, RunningKernel] | None:
        """The kernel that has waited longest for a peer, with the begin of the wait."""
        waits = [(kernel.waits_since_ps, kernel) for kernel in self._kernels]
        begun = [(since_ps, kernel) for since_ps, kernel in waits if since_ps is not None]
        return min(begun, key=lambda wait: wait[0], default=None)

    @property
    def _kernels(self) -> list[RunningKernel]:
        """The kernels that run, except transfers, in the order of the threads."""
        running = self._running
        return [running[thread, ""] for thread in RECORDED_AS if (thread, "") in running]

    def enter_barrier(self, barrier: LaunchBarrier) -> Completion[None]:
        """A kernel has called the barrier of its launch; completes when all its PEs have."""
        done: Any = AnyCompletion()
        self._barriers[barrier] = done
        barrier.waiting[self._pe] = None
        m_cpu = self._chip.graph.m_cpu(self._context.coordinates.cube)
        signal = BarrierSignal(barrier, "pe arrived")
        self._port.send(m_cpu, signal, self._chip.topology.control_bytes)
        return done

    def _transfer(self, packet: Packet, order: PeDmaMsg) -> None:
        """A DMA without a kernel, for the host."""
        context, began_ps = self._context, self._context.engine.now_ps
        sip, _ = context.locate(order.address)
        # Promises to other SIPs count on it that memories receive no requests from elsewhere.
        if sip != context.coordinates.sip and not self._chip.remote_dma:
            problem = (
                f"DMA of {context.coordinates} to sip {sip}: "
                "the run was not declared to have DMA between SIPs"
            )
            raise ProgramRaised(self._chip.sip, RuntimeError(problem))

        def finished(_: Completion[bytes]) -> None:
            self._port.answer(packet, CommandDone(began_ps, context.engine.now_ps))

        far = bytes_at(order.address, order.nbytes)
        near = bytes_at(context.tcm.base + order.tcm_offset, order.nbytes)
        if order.operation == "read":
            self._dma.read(far, near).then(finished)
        else:
            self._dma.write(near, far, context.tcm.read(near)).then(finished)

    def _install(self, order: PeInstall) -> None:
        self._ipcq.install(order.table, order.queues)
        # The memory of a ring reports its full slots here, wherever in the system it is.
        for pair in order.queues:
            if pair.rx_base is not None:
                self._chip.watch_ring(pair.rx_base, pair.ring_bytes, self._context.node)
        # A kernel with this table may send to these SIPs, and to no others: a bound for promises.
        elsewhere = {pair.peer.sip for pair in order.queues} - {self._context.coordinates.sip}
        self._chip.send_bounds.reaches(self._pe, order.table, tuple(sorted(elsewhere)))

    def _reserve_queues(self, launch: PeLaunch, user: str) -> None:
        """Reserve the queues for a collective, or release them.

        From the arrival of its command on: a kernel that was launched later may start before it.
        """
        # Kernels with one table share its rings: slots of another kernel would mix with those of
        # the collective.
        if launch.thread == "collectives":
            self._ipcq.table(launch.queues).user = user

    def _begin(self, packet: Packet, launch: PeLaunch, received_ps: int) -> None:
        """The start time of a launch has come: start it, or post it if it is a send."""
        run = KernelRun(self, packet, launch, self.engine.now_ps, received_ps)
        if launch.transfer is not None and launch.transfer.end == "send":
            self._ipcq.sends.post(launch.call, launch.transfer, partial(self._start, run))
        else:
            self._start(run)

    def _start(self, run: "KernelRun") -> None:
        kernel = self._chip.start_kernel(self._context.coordinates, run.launch)
        self._running[_slot(run.launch)] = kernel
        kernel.finished.then(run)

    def ended(self, run: "KernelRun", error: BaseException | None) -> None:
        """A kernel has ended: record it, and answer its command."""
        launch = run.launch
        self._running.pop(_slot(launch)).close()
        self._reserve_queues(launch, "")
        if launch.transfer is None:
            self._chip.send_bounds.ended(self._pe, launch.thread)
        else:
            self._chip.send_bounds.transferred(launch.call)
        if error is not None:
            self._failed(error)
        if launch.transfer is not None and launch.transfer.end == "send":
            self._ipcq.sends.ended()
        now_ps, (cube, pe) = self.engine.now_ps, self._pe
        name = f"kernel {launch.name}"
        record = OpRecord(RECORDED_AS[launch.thread], name, run.start_ps, now_ps, cube, pe)
        self._context.record(record, run.received_ps, Cause.LAUNCH)
        self._port.answer(run.command, CommandDone(run.start_ps, now_ps))

    def _failed(self, error: BaseException) -> None:
        """Raise, out of the event loop, what a kernel has raised."""
        raise ProgramRaised(self._chip.sip, error)


def _slot(launch: PeLaunch) -> tuple[HardwareThread, str]:
    """The slot of a PE that holds at most one running kernel: a thread, or a message."""
    return launch.thread, launch.call if launch.transfer is not None else ""
