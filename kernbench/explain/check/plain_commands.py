"""Commands whose kernels exchange no message and make no undefined value: most of a run.

What comes after such a command is what comes before it, and the command. If all that it reads is
defined, all that it writes is, too. So its calls are not replayed one by one.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernbench.explain.check.geometry import RowLayout
from kernbench.explain.check.run_calls import SipCalls
from runtime.core.run_tables import NONE

Numbers = NDArray[Any]


class PlainCommands:
    """The plain commands of a SIP."""

    def __init__(self, calls: SipCalls) -> None:
        memory, commands = calls.blocks.memory, calls.commands_of_calls
        launched = {each.command for each in calls.programs}
        others = np.concatenate([commands[calls.exchanges], commands[calls.blocks.makes], [NONE]])
        self._numbers = launched.difference(np.unique(others).tolist())
        command = commands[memory.place]
        rows = np.flatnonzero(np.isin(command, np.array(sorted(self._numbers), np.int64)))
        columns = (command[rows], memory.writes[rows], memory.tensor[rows])
        columns += (np.where(memory.writes[rows], memory.begin[rows], 0),)
        columns += (np.where(memory.writes[rows], memory.layout[rows], 0),)
        # Reads of a tensor are one use, and so are equal writes.
        self._uses: Numbers = np.unique(np.stack(columns), axis=1)
        self._layouts = memory.layouts

    def __contains__(self, command: int) -> bool:
        return command in self._numbers

    def reads(self, command: int) -> list[int]:
        """The tensors that a command reads."""
        _, writes, tensors, _, _ = self._of(command)
        return tensors[writes == 0].tolist()

    def writes(self, command: int) -> Iterator[tuple[int, int, RowLayout]]:
        """The tensors that a command writes, with the address of a block and its layout."""
        uses = self._of(command)
        for _, _, tensor, begin, layout in uses[:, uses[1] == 1].T.tolist():
            yield tensor, begin, self._layouts[layout]

    def _of(self, command: int) -> Numbers:
        begin, end = np.searchsorted(self._uses[0], [command, command + 1]).tolist()
        return self._uses[:, begin:end]
