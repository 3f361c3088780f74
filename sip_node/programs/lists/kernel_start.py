"""Starts kernels: from a command list where there is one, else with the function of the kernel."""

from collections import Counter

from runtime.core.requests import KernelLaunchMsg
from sip_node.chip.kernel import PeLaunch, RunningKernel
from sip_node.chip.launch_keys import LaunchKey
from sip_node.chip.pe.pe import Pe
from sip_node.programs.kernel_context import PeKernelContext
from sip_node.programs.lists.command_lists import CollectiveLists, CommandLists
from sip_node.programs.lists.listed_kernel import ListedKernel
from sip_node.programs.program_stacks import ProgramStacks


class KernelStart:
    """The kernels of an LP: `listed` of those that have `started` on a PE ran from a list, and
    `repeated` were those of a launch that was not simulated.

    `lists` is None where each PE runs the function of its kernel.
    """

    def __init__(self, lists: CommandLists | None) -> None:
        self._stacks, self._lists = ProgramStacks(), lists
        self._collectives = None if lists is None else CollectiveLists()
        self.started = self.listed = self.repeated = 0
        self._functions = Counter[int]()

    def key(self, sip: int, number: int, launch: KernelLaunchMsg) -> LaunchKey | None:
        """See `LaunchKeys`."""
        return None if self._lists is None else self._lists.launch_key(sip, number, launch)

    def exchange_key(self, sip: int, number: int, launch: KernelLaunchMsg) -> LaunchKey | None:
        """See `LaunchKeys`."""
        return None if self._lists is None else self._lists.exchange_key(sip, number, launch)

    def is_listed(self, key: LaunchKey, launch: KernelLaunchMsg) -> bool:
        """See `LaunchKeys`."""
        return self._lists is not None and self._lists.holds(key, launch)

    def functions(self, sip: int) -> int:
        """See `LaunchKeys`."""
        return self._functions[sip]

    def repeat(self, pes: int) -> None:
        """See `LaunchKeys`."""
        self.started += pes
        self.repeated += pes

    def start(self, pe: Pe, launch: PeLaunch) -> RunningKernel:
        """Start a kernel on a PE now; returns when it first waits or has ended."""
        self.started += 1
        lists = self._collectives if launch.call else self._lists
        commands = None if lists is None else lists.find(pe, launch)
        if commands is None or commands.exchanges or launch.call:
            # A launch with messages counts as one whose functions run: it is no template of one
            # chip.
            self._functions[pe.coordinates.sip] += 1
        if commands is None:
            kernel = PeKernelContext(pe, launch, self._stacks)
            kernel.program.start()
            return kernel
        self.listed += 1
        launches = pe.chip.launches
        if commands.exchanges and not launch.call and launches is not None:
            launches.leave_out()
        listed = ListedKernel(pe, launch, commands)
        listed.program.start()
        return listed

    def close(self) -> None:
        """End the kernels that wait."""
        self._stacks.close()
