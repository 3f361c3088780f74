"""The steps of programs, in C, as Python sees them."""

from typing import Any

from sip_node.chip.step_rows import StepRows

class ProgramSteps:
    pair_of: Any
    scratch_bytes: Any
    def bind(
        self, engine: Any, log: Any, rows: StepRows, program: int, cube: int, pe: int
    ) -> None: ...
    def step(self, blocked: Any, issue_ps: int, sleep: Any, *args: object) -> Any: ...
    def block(self, blocked: Any, line: int, issue_ps: int, sleep: Any, *args: object) -> Any: ...
