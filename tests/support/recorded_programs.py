"""The tables that a run inside the process of a test has recorded."""

from collections import defaultdict
from typing import Any, NamedTuple

from runtime.core.run_tables import PROGRAMS, STEPS, Form, RunTable
from tests.support.world import Simulation

Row = dict[str, Any]


def rows_of(world: Simulation, sip: int, table: RunTable) -> list[Row]:
    """The rows of a table of a SIP, by column, with texts."""
    texts = world.texts.get(sip, [])
    return [
        {
            column.name: texts[value] if column.form is Form.TEXT else value
            for column, value in zip(table.columns, row, strict=True)
        }
        for row in table.packer.iter_unpack(world.rows.get((sip, table.name), b""))
    ]


class RecordedProgram(NamedTuple):
    """A program with its steps in the order of their begins."""

    program: Row
    steps: list[Row]

    @property
    def gaps(self) -> list[str]:
        """Gaps and overlaps of the steps in a program, and steps whose times are out of order."""
        at, found = self.program["begin_ps"], []
        for step in self.steps:
            if step["begin_ps"] != at:
                found.append(f"step {step['step']} begins at {step['begin_ps']} and not at {at}")
            if not step["begin_ps"] <= step["issued_ps"] <= step["end_ps"] > step["begin_ps"]:
                found.append(f"step {step['step']} is out of order: {step}")
            at = step["end_ps"]
        if at != self.program["end_ps"]:
            found.append(f"the last step ends at {at}, the program {self.program['end_ps']}")
        return found


def programs_of(world: Simulation, sip: int) -> list[RecordedProgram]:
    """The programs of a SIP in the order of their starts."""
    steps = defaultdict[int, list[Row]](list)
    for step in sorted(rows_of(world, sip, STEPS), key=lambda step: step["step"]):
        steps[step["program"]].append(step)
    programs = sorted(rows_of(world, sip, PROGRAMS), key=lambda program: program["program"])
    return [RecordedProgram(program, steps.pop(program["program"], [])) for program in programs]
