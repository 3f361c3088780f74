"""One kernel on one PE, from its start to the end of everything that it started.

A kernel is a function of the user in a greenlet of its own (`Program`). The parts around it:

    tl  -->  PeKernelContext   what a kernel may call; computes the data
                 |-- CommandIssuer      the overhead of PE_CPU, scheduler and MMU; sleeps
                 |-- KernelMemory       scratch in TCM, virtual addresses
                 |-- Sends, Receives    messages, slot by slot
                 |-- Operations         matrix products and receives that run beside the kernel
                 '-- KernelWait         the peer or the time that the kernel waits for
"""

from sip_node.chip.kernel import PeLaunch, RunningKernel
from sip_node.chip.pe.pe import Pe
from sip_node.programs.kernel_context import PeKernelContext
from sip_node.programs.program_stacks import ProgramStacks


def start_kernel(pe: Pe, launch: PeLaunch, stacks: ProgramStacks) -> RunningKernel:
    """Start a kernel on a PE now, on one of `stacks`; returns when it first waits or has ended."""
    context = PeKernelContext(pe, launch, stacks)
    context.program.start()
    return context
