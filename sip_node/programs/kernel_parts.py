"""The objects that the operations of a running kernel are made of."""

from typing import Any

from runtime.language.program_ids import ProgramIds
from sip_node.chip.kernel import PeLaunch
from sip_node.chip.pe.pe import Pe
from sip_node.chip.pe.queue_table import SlotTrace
from sip_node.programs.kernel_faults import KernelFaults
from sip_node.programs.kernel_issue import CommandIssuer
from sip_node.programs.kernel_memory import KernelMemory
from sip_node.programs.kernel_operation import Operations
from sip_node.programs.kernel_queues import KernelQueues
from sip_node.programs.kernel_receive import Receives
from sip_node.programs.kernel_send import Sends
from sip_node.programs.kernel_wait import KernelWait
from sip_node.programs.program import Program
from sip_node.programs.program_steps import ProgramSteps


class KernelParts:
    """The parts of one kernel on one PE, made when it uses one of them; `program` runs the kernel.

    Of many launches on all PEs of a SIP each kernel has little to do, and these objects are half of
    what it costs.
    """

    _ids: ProgramIds
    _faults: KernelFaults
    _memory: KernelMemory
    _issuer: CommandIssuer
    _queues: KernelQueues
    _sends: Sends
    _receives: Receives
    _wait: KernelWait
    _operations: Operations

    def __init__(self, pe: Pe, launch: PeLaunch, program: Program) -> None:
        self._pe, self._launch, self.program = pe, launch, program
        self._has_parts = False
        # Of a kernel that runs in a run with records.
        self._steps: ProgramSteps | None = None

    def __getattr__(self, name: str) -> Any:
        if name == "_ids":
            return self._made_ids()
        if name not in KernelParts.__annotations__:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}", name=name)
        self._make_parts()
        return self.__dict__[name]

    def _made_ids(self) -> ProgramIds:
        at, launch = self._pe.coordinates, self._launch
        grid = None if launch.programs is None else launch.programs.grid
        self._ids = ids = ProgramIds((at.pe, at.cube), (launch.pes, launch.cubes), grid)
        return ids

    def _make_parts(self) -> None:
        pe, launch, program, chip = self._pe, self._launch, self.program, self._pe.chip
        self._faults = KernelFaults(launch.name, pe.coordinates, launch.call)
        self._memory = KernelMemory(
            chip.topology, launch.thread, pe.tcm.base, pe.mmu, self._faults, launch.stored
        )
        sink = chip.log.transferred
        trace = None if sink is None else SlotTrace(chip.addresses, pe.context, launch.name, sink)
        self._issuer = CommandIssuer(chip.engine, chip.topology, program, self._steps)
        self._queues = KernelQueues(pe.ipcq.table(launch.queues), launch, self._faults)
        if self._steps is not None:
            self._steps.pair_of = self._queues.table.pair
            self._steps.scratch_bytes = self._memory.used_bytes
        self._receives = Receives(
            engine=chip.engine,
            dma=pe.dma,
            queues=self._queues.table,
            issue_ps=self._issuer.issue_ps,
            faults=self._faults,
            trace=trace,
            tcm=pe.tcm,
            transfer=launch.transfer,
        )
        self._wait = KernelWait(pe, launch, program, self._queues, self._receives)
        self._operations = Operations(self._issuer, self._wait)
        self._sends = Sends(self._issuer, self._wait, pe.dma, self._queues, self._faults, trace)
        self._has_parts = True
