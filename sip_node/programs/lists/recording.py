"""Runs the function of a kernel once in a recorder."""

from collections.abc import Sequence
from contextvars import copy_context

from runtime.core.program_grid import GridPoint
from runtime.language.caller import call_kernel
from runtime.language.chain import VectorRegisters
from runtime.language.program_ids import ProgramIds
from runtime.language.running import current_pe
from runtime.model.tiles import TileSize
from sip_node.chip.kernel import PeLaunch
from sip_node.chip.pe.pe import Pe
from sip_node.programs.kernel_faults import KernelFaults
from sip_node.programs.kernel_memory import KernelScratch
from sip_node.programs.lists.guarded_integers import OpenVariables, variables
from sip_node.programs.lists.guarded_recorder import GuardedRecorder
from sip_node.programs.lists.key_states import HAS_NONE, KeyState, ListVariant
from sip_node.programs.lists.message_recorder import MessageRecorder
from sip_node.programs.lists.not_listed import NotListed, ReadsId, ReadsNumber
from sip_node.programs.lists.opened_arguments import OpenedArguments

MOST_OF_A_LIST = 1 << 13
"""The commands of a list: a longer kernel takes its time in its commands, and not in its start."""
MOST_OF_A_COLLECTIVE = 1 << 16
"""The commands of the list of a collective: its time is in slots, which a list makes shorter."""
Places = tuple[int, ...]
"""The places of numbers among those of the arguments."""


def _recorder_parts(
    pe: Pe, launch: PeLaunch, program: GridPoint | None, most: int
) -> tuple[KernelScratch, TileSize, VectorRegisters, ProgramIds, int]:
    """The arguments of a recorder: those of the machine and of the program."""
    topology, (_, cube, own), dealt = pe.chip.topology, pe.coordinates, launch.programs
    math = topology.pe.math
    faults = KernelFaults(launch.name, pe.coordinates)
    grid = None if dealt is None else dealt.grid
    ids = ProgramIds((own, cube), (launch.pes, launch.cubes), grid)
    ids.program = program
    return (
        KernelScratch(topology, launch.thread, 0, faults),
        topology.tile,
        VectorRegisters(math.registers, math.lanes, 0),
        ids,
        most,
    )


def recorded_variant(
    pe: Pe,
    launch: PeLaunch,
    program: GridPoint,
    addresses: Sequence[int],
    numbers: int,
    variant: int,
) -> ListVariant | None:
    """List number `variant` of a kernel, with guards, which a program makes; None if it has none.

    `addresses` are those of its pointers; none of its `numbers` is open.
    """
    opened = OpenVariables(variables(program, addresses))
    recorder = GuardedRecorder(*_recorder_parts(pe, launch, program, MOST_OF_A_LIST), opened)
    arguments = OpenedArguments(range(numbers))

    def run() -> None:
        current_pe.set(recorder)
        given = [arguments.of(each) for each in launch.arguments]
        call_kernel(launch.name, pe.coordinates, launch.kernel, given)

    try:
        copy_context().run(run)
    except NotListed:
        return None
    except Exception:  # noqa: BLE001 - a kernel may raise anything, and will raise it again
        return None
    return ListVariant(variant, opened.guards(), recorder.commands())


def recorded(
    pe: Pe,
    launch: PeLaunch,
    program: GridPoint | None,
    reads: Places,
    numbers: int,
    *,
    closed: tuple[int, ...],
) -> KeyState:
    """The list that the function of a kernel makes in a recorder; of its `numbers`, those with
    places in `reads` are not open, nor are the ids of its program on the axes `closed`. Raises
    `ReadsNumber` or `ReadsId` where it reads what is open.

    It has none if it fails: then it runs again on each PE, with the error of that PE. Open numbers
    and ids may be why it fails.
    """
    most = MOST_OF_A_COLLECTIVE if launch.call else MOST_OF_A_LIST
    recorder = MessageRecorder(*_recorder_parts(pe, launch, program, most), closed=closed)
    opened = OpenedArguments(reads)
    kernel, *arguments = [opened.of(each) for each in (launch.kernel, *launch.arguments)]
    assert opened.numbers == numbers, "numbers are opened in the order of the keys"

    def run() -> None:
        current_pe.set(recorder)
        call_kernel(launch.name, pe.coordinates, kernel, arguments)

    try:
        copy_context().run(run)
    except (ReadsNumber, ReadsId):
        raise
    except NotListed:
        return HAS_NONE
    except Exception as error:
        # A kernel may raise anything, and will raise it again.
        if len(reads) < numbers:
            raise ReadsNumber(frozenset(range(numbers))) from error
        axes = tuple(range(len(recorder.ids.own)))
        if len(closed) < len(axes):
            raise ReadsId(axes) from error
        return HAS_NONE
    return KeyState(recorder.commands(), exchanges=recorder.exchanges)
