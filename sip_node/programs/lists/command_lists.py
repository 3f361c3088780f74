"""The command lists of an LP: made at the first launch with a key, and used by all later ones."""

from collections import OrderedDict
from contextvars import copy_context

from runtime.language.caller import call_kernel
from runtime.language.chain import VectorRegisters
from runtime.language.running import current_pe
from sip_node.chip.kernel import PeLaunch
from sip_node.chip.pe.pe import Pe
from sip_node.programs.kernel_faults import KernelFaults
from sip_node.programs.kernel_memory import KernelScratch
from sip_node.programs.lists.arguments import Argument, based
from sip_node.programs.lists.commands import Command
from sip_node.programs.lists.plain_code import is_own
from sip_node.programs.lists.recorder import CommandRecorder, NotListed

MOST_LISTS = 1024
"""The lists that are kept: those of a model's operators, and not those of all that ever ran."""


class CommandList:
    """The `commands` of a kernel on a PE, whose pointers have `addresses`."""

    def __init__(self, commands: tuple[Command, ...], addresses: list[int]) -> None:
        self.commands, self.addresses = commands, addresses


class CommandLists:
    """The lists of the kernels of an LP.

    `listed` of the `kernels` that have started on a PE had a list.
    """

    def __init__(self) -> None:
        self.kernels = self.listed = 0
        # None for a kernel that no list holds.
        self._lists: OrderedDict[tuple[object, ...], tuple[Command, ...] | None] = OrderedDict()
        # The parts of keys of one launch, by the identity of what all its PEs share.
        self._launch: object = None
        self._parts: dict[int, Argument | None] = {}

    def find(self, pe: Pe, launch: PeLaunch) -> CommandList | None:
        """The list of a kernel that starts on a PE; None for one that has none."""
        self.kernels += 1
        # What sends or receives depends on its peers, and a program of a grid on its ids.
        if launch.thread != "kernels" or launch.call or launch.programs is not None:
            return None
        parts = self._arguments(launch)
        if parts is None:
            return None
        key = (launch.pes, launch.cubes, *(each.key for each in parts))
        if key in self._lists:
            self._lists.move_to_end(key)
            commands = self._lists[key]
        else:
            commands = self._lists[key] = _recorded(pe, launch)
            if len(self._lists) > MOST_LISTS:
                self._lists.popitem(last=False)
        if commands is None:
            return None
        self.listed += 1
        return CommandList(commands, [address for each in parts for address in each.addresses])

    def _arguments(self, launch: PeLaunch) -> list[Argument] | None:
        """The kernel and its arguments, as parts of a key; None for one that has no key."""
        if launch.barrier is not self._launch:
            self._launch, self._parts = launch.barrier, {}
        own, parts = is_own(getattr(launch.kernel, "__module__", None)), list[Argument]()
        for each in (launch.kernel, *launch.arguments):
            known = self._parts.get(id(each), self)
            if known is self:
                known = self._parts[id(each)] = _argument(each, is_own=own)
            if known is None:
                return None
            assert isinstance(known, Argument)
            parts.append(known)
        return parts


def _argument(each: object, *, is_own: bool) -> Argument | None:
    try:
        return Argument(each, is_own=is_own)
    except NotListed:
        return None


def _recorded(pe: Pe, launch: PeLaunch) -> tuple[Command, ...] | None:
    """Run the function of a kernel in a recorder; None if it has no list, or fails.

    A kernel that fails runs again on each PE, with the error of that PE.
    """
    topology, math = pe.chip.topology, pe.chip.topology.pe.math
    faults = KernelFaults(launch.name, pe.coordinates)
    recorder = CommandRecorder(
        KernelScratch(topology, launch.thread, 0, faults),
        topology.tile,
        VectorRegisters(math.registers, math.lanes, 0),
        (launch.pes, launch.cubes),
    )

    def run() -> None:
        current_pe.set(recorder)
        arguments = based(launch.arguments)
        call_kernel(launch.name, pe.coordinates, launch.kernel, arguments)

    try:
        copy_context().run(run)
    except NotListed:
        return None
    except Exception:  # noqa: BLE001 - a kernel may raise anything, and will raise it again
        return None
    return recorder.commands()
