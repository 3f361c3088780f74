"""The fixed times of the commands of a kernel: each overhead of a PE stands here, and only here.

    issue            PE CPU and scheduler, for every command
    translated       with the MMU, for a load or a store, whose addresses are virtual
    program          the begin of each program of a launch with a grid
    start of a read  from the channel of the DMA to the first READ; of a write, to the first packet
    IPCQ             an arrival or a credit, until it counts

All of them are whole picoseconds.
"""

from kernbench.oracle.theory.topology_file import TopologyFile


class FixedTimes:
    """The fixed times of one topology file, in picoseconds."""

    def __init__(self, file: TopologyFile) -> None:
        # The CPU and the scheduler handle a command in sequence: neither overlaps with the other.
        self.issue_ps = file.ps("pe.cpu.overhead_ns") + file.ps("pe.scheduler.overhead_ns")
        self.translated_ps = self.issue_ps + file.ps("pe.mmu.overhead_ns")
        self.program_ps = file.ps("pe.cpu.program_ns")
        # A copy from one memory to another begins as a read.
        self.read_start_ps = file.ps("pe.dma.overhead_ns")
        self.write_start_ps = file.ps("pe.dma.overhead_ns")
        self.ipcq_ps = file.ps("pe.ipcq.overhead_ns")
