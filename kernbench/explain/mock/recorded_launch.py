"""Checks a launch of the mock runtime: its calls are recorded as those on the chip, without times,
and the check replays them.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Unpack

from kernbench.explain.check.findings import Findings, check_records, without_times
from kernbench.explain.check.report import finding_lines
from kernbench.explain.check.run_calls import SipCalls
from kernbench.explain.mock.recorded_pe import RecordedPe
from kernbench.explain.records import RunRecords
from kernbench.explain.records.collected import simulated_records
from runtime.core.coordinates import PeCoordinates
from runtime.core.errors import FindingsError
from runtime.core.run_tables import (
    MEMORY,
    NONE,
    ORDERS,
    RANK_PROGRAM,
    SHARDS,
    BlockAccess,
    Order,
)
from runtime.language.mock.memory import MappedArray
from runtime.language.mock.pe import PeOptions
from sip_node.chip.mapping.strided_block import bytes_at
from sip_node.chip.records.kept_calls import IN_MEMORY
from sip_node.chip.records.op_log import OpLog
from sip_node.chip.records.run_recorder import RunRecorder
from sip_node.pdes.engine import Engine

_COPY, _LAUNCH = 1, 2
"""The commands: the arrays are written, then the kernel is launched."""


class RecordedLaunch:
    """The records of a launch of `kernel` at `line` of the program; its pointers lead to `arrays`.

    Its program is that of a rank which copies the arrays to the chip, and launches.
    """

    def __init__(self, kernel: str, line: str, arrays: Sequence[MappedArray]) -> None:
        self._kernel = kernel
        self._rows = defaultdict[tuple[int, str], bytes](bytes)
        self._texts: list[str] = []
        self.engine, self.recorder = Engine(), RunRecorder(self._add)
        self.log = OpLog(None, recorder=self.recorder)
        used = [each for each in arrays if each.content.nbytes]
        for number, array in enumerate(used):
            self._add_tensor(number, array)
        self._submit(_COPY, line, used)
        self._submit(_LAUNCH, line, ())
        after = ORDERS.packer.pack(_LAUNCH, _COPY, self._text(Order.STREAM), self._text(""))
        self.recorder.add(ORDERS, after)

    def pe(
        self, coordinates: PeCoordinates, programs: tuple[int, int], **options: Unpack[PeOptions]
    ) -> RecordedPe:
        """A PE of the launch."""
        return RecordedPe(self, _LAUNCH, coordinates, programs, **options)

    def findings(self) -> Findings:
        """The findings, once all PEs have run."""
        return without_times(check_records(self._records()))

    def calls(self) -> SipCalls:
        """The calls, once all PEs have run."""
        return SipCalls(self._records(), 0)

    def check(self) -> None:
        """`FindingsError` with the reports, if there are any."""
        findings = self.findings()
        if findings.reports:
            raise FindingsError(self._kernel, "\n".join(finding_lines(findings, self._kernel)))

    def _records(self) -> RunRecords:
        self.recorder.flush()
        return simulated_records(1, 0, self._rows, {0: self._texts})

    def _add(self, table: str, rows: bytes, texts: Iterable[str]) -> None:
        self._rows[0, table] += rows
        self._texts += texts

    def _text(self, text: str) -> int:
        return self.recorder.text(text)

    def _add_tensor(self, number: int, array: MappedArray) -> None:
        call, nbytes = self.recorder.calls.new_call(), array.content.nbytes
        name, line = self._text(array.name), self._text("")
        itemsize = array.content.itemsize
        place = 0, array.address, nbytes, itemsize, number, NONE, _COPY, _LAUNCH
        self.recorder.add(MEMORY, MEMORY.packer.pack(number, call, name, line, *place))
        self.recorder.add(SHARDS, SHARDS.packer.pack(number, NONE, NONE, 0, array.address, nbytes))

    def _submit(self, command: int, line: str, written: Iterable[MappedArray]) -> None:
        rows = self.recorder.calls
        call, of, place = rows.new_call(), self._text("submit"), self._text(line)
        for each in written:
            block = bytes_at(each.address, each.content.nbytes)
            rows.add_block(call, BlockAccess.WRITE, IN_MEMORY, block)
        rows.add(call, RANK_PROGRAM, of, place, 0, 0, NONE, command, self._text(""), 0, 0)
