"""The op log of one SIP in C, as Python sees it."""

from collections.abc import Callable, Iterable

from runtime.core.trace import OpRecord
from runtime.wire.reports import DevicePrint, SlotTransfer
from sip_node.chip.fabric.packet_train import QueueTimes
from sip_node.chip.run_recorder import RunRecorder
from sip_node.compiled.step_rows import StepRows

class OpLog:
    last_ps: int
    transferred: Callable[[SlotTransfer], None] | None
    printed: Callable[[DevicePrint], None] | None
    recorder: RunRecorder | None
    steps: StepRows | None
    def __init__(
        self,
        sink: Callable[[bytes], None] | None,
        written: Callable[[bytes], None] | None = None,
        transferred: Callable[[SlotTransfer], None] | None = None,
        printed: Callable[[DevicePrint], None] | None = None,
        recorder: RunRecorder | None = None,
    ) -> None: ...
    def ended_now(self, now_ps: int, cube: int, pe: int) -> int: ...
    def add(
        self,
        record: OpRecord,
        requested_ps: int | None = None,
        cause: str = "",
        times: QueueTimes | None = None,
    ) -> None: ...
    def add_crossing(
        self,
        *,
        engine: str,
        name: str,
        start_ps: int,
        end_ps: int,
        address: int,
        nbytes: int,
        requested_ps: int,
        times: QueueTimes | None,
    ) -> None: ...
    def begin_recording(self) -> list[OpRecord]: ...
    def waits(self, records: list[OpRecord]) -> list[tuple[int, int, QueueTimes | None]]: ...
    def end_recording(self, records: list[OpRecord]) -> None: ...
    def add_written(self, data: bytes) -> None: ...
    def flush(self) -> None: ...
    def digest(self, memories: Iterable[object]) -> str: ...
