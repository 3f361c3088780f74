"""The barrier in a running kernel: a command that ends when all PEs of the launch call it."""

from runtime.core.coordinates import PeCoordinates
from runtime.core.program_grid import ALONE
from runtime.language.memory_in_flight import BARRIER
from sip_node.chip.barrier import LaunchBarrier
from sip_node.chip.kernel import PeLaunch
from sip_node.chip.pe.pe import Pe
from sip_node.programs.kernel_faults import KernelFaults
from sip_node.programs.kernel_issue import CommandIssuer
from sip_node.programs.kernel_operation import Operations
from sip_node.programs.kernel_wait import KernelWait

_SHOWN = 4
"""PEs that a message names; it counts the others."""


def await_all_pes(
    pe: Pe,
    launch: PeLaunch,
    issuer: CommandIssuer,
    wait: KernelWait,
    operations: Operations,
    faults: KernelFaults,
) -> None:
    """Block until all PEs of the launch have called the barrier."""
    if launch.programs is not None:
        raise faults.error(f"{BARRIER}: {ALONE}")
    problem = operations.memory.unordered()
    if problem is not None:
        raise faults.error(problem)
    barrier = launch.barrier
    assert barrier is not None, "a launch of the IO_CPU has a barrier"
    wait.begin_barrier(lambda: _missing(pe, barrier))
    issuer.issue("barrier", pe.cpu.enter_barrier, barrier)
    wait.end()


def _missing(pe: Pe, barrier: LaunchBarrier) -> tuple[str, PeCoordinates | None]:
    """The PEs that a barrier waits for, as text, and the first of them whose kernel runs."""
    missing, running = barrier.missing, list[tuple[int, int]]()
    named: list[str] = []
    for cube, number in missing:
        if _runs(pe, cube, number):
            running.append((cube, number))
            named.append(f"cube {cube} pe {number}")
        else:
            named.append(f"cube {cube} pe {number} (ended without it)")
    if len(named) > _SHOWN:
        named[_SHOWN:] = [f"{len(named) - _SHOWN} more"]
    first = PeCoordinates(pe.coordinates.sip, *running[0]) if running else None
    return f"without {', '.join(named)}", first


def _runs(pe: Pe, cube: int, number: int) -> bool:
    """Whether another PE of the launch still runs its kernel."""
    other = pe.chip.reach(pe.chip.graph.pe(cube, number))
    return isinstance(other, Pe) and other.cpu.running > 0
