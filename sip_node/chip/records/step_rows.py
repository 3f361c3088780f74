"""The rows of the steps of programs for the records of a run, and the lines of their kernels."""

from inspect import currentframe
from types import CodeType, FrameType

from runtime.core.run_tables import STEPS
from sip_node.chip.records.run_recorder import RunRecorder


class StepRows:
    """Packs the rows of one SIP for `recorder`."""

    def __init__(self, recorder: RunRecorder) -> None:
        self._recorder, self._pack = recorder, STEPS.packer.pack
        self._numbers = 0
        # By the id of a code object, which is kept so that no other has it: the hash of a code
        # object is computed from all that it contains.
        self._language: dict[int, tuple[CodeType, bool]] = {}
        self._lines: dict[tuple[int, int], int] = {}

    def new_step(self) -> int:
        """The number of the next step that begins."""
        self._numbers += 1
        return self._numbers - 1

    def text(self, text: str) -> int:
        """The index of a text in the list of texts of the SIP."""
        return self._recorder.text(text)

    def kernel_line(self) -> int:
        """The text of the innermost line of a kernel, searched from the caller outwards."""
        known, recorder = self._language, self._recorder
        frame: FrameType | None = currentframe()
        while frame is not None:
            code = frame.f_code
            entry = known.get(id(code))
            if entry is None:
                entry = known[id(code)] = code, recorder.is_language(frame)
            if not entry[1]:
                # By instruction, since the line of one is searched in a table.
                instruction = id(code), frame.f_lasti
                line = self._lines.get(instruction)
                if line is None:
                    line = self._lines[instruction] = recorder.line(frame)
                return line
            frame = frame.f_back
        return recorder.unknown_line()

    def add(self, *values: int) -> None:
        """Add the row of a step, the values in the order of the columns."""
        self._recorder.add(STEPS, self._pack(*values))

    def flush(self) -> None:
        """Give the rows to the recorder, which has each of them already."""
