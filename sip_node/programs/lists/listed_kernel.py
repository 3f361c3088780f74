"""A kernel on a PE that runs from a command list: without its function, and without a stack."""

from collections.abc import Sequence

from runtime.language.caller import UNKNOWN_LINE
from sip_node.chip.kernel import PeLaunch
from sip_node.chip.pe.pe import Pe
from sip_node.programs.kernel_context import KernelCommands
from sip_node.programs.kernel_faults import raised_by_command
from sip_node.programs.lists.command_lists import CommandList
from sip_node.programs.lists.commands import ListedCommand
from sip_node.programs.lists.places import ListRun
from sip_node.programs.program import Steps, StepsProgram


class ListedKernel(KernelCommands):
    """One kernel on one PE, whose commands are those of a list."""

    def __init__(self, pe: Pe, launch: PeLaunch, commands: CommandList) -> None:
        self._list = commands
        super().__init__(pe, launch, StepsProgram(lambda _: self._carried_out()))

    def _carried_out(self) -> Steps[None]:
        """Carry out the list to the end of everything that it starts."""
        self._begin_steps()
        if self._launch.call:
            # Also of a kernel that uses none of its queues: see `KernelQueues`.
            self._make_messages()
        if self._steps is None:
            yield from self._each()
            return
        with self._steps:
            yield from self._each()

    def _each(self) -> Steps[None]:
        for program, commands in self._list.programs:
            if program is None:
                if commands:
                    (_, cube, pe) = self._pe.coordinates
                    yield from self._program(commands, (pe, cube))
                    yield from self._operations.awaiting_all()
            else:
                self._issuer.line = UNKNOWN_LINE
                yield from self._beginning_program(program)
                yield from self._program(commands, program)
                yield from self._ending_program()

    def _program(self, commands: Sequence[ListedCommand], ids: Sequence[int]) -> Steps[None]:
        """Carry out the commands of a program."""
        issuer, faults, data = self._issuer, self._faults, self._pe.chip.data
        registers = self.vector_registers.address
        addresses, numbers = self._list.addresses, self._list.numbers
        run = ListRun(self, addresses, numbers, ids, registers, has_data=data)
        try:
            for each in commands:
                issuer.line = faults.line = each.line
                yield from each.steps(run)
        except Exception as error:
            raise raised_by_command(self._launch, faults, error) from error
        # What follows is behind the last line of the kernel.
        issuer.line = faults.line = UNKNOWN_LINE
