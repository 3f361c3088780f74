"""The op log of one SIP: records in the order of their completion, and the digest over them."""

from collections.abc import Callable, Iterable
from hashlib import sha256
from typing import TYPE_CHECKING

import msgspec

from runtime.core.launch_numbers import LaunchNumber
from runtime.core.run_tables import NONE, Cause
from runtime.core.trace import OpRecord
from runtime.wire.reports import DevicePrint, SlotTransfer
from sip_node.chip.records.op_rows import OpRows
from sip_node.chip.records.packet_train import QueueTimes
from sip_node.chip.records.run_recorder import RunRecorder
from sip_node.chip.records.step_rows import StepRows

if TYPE_CHECKING:
    from sip_node.chip.memory.memory import Memory

CHUNK_RECORDS = 1024
"""Records of a chunk: up to 65,535, its array header has at most three bytes."""


def _plain(number: object) -> float:
    """The number of a launch without its formula."""
    if type(number) is LaunchNumber:
        return float(number)
    raise TypeError(f"{number!r} is no number of a record")


_encoder = msgspec.msgpack.Encoder(enc_hook=_plain)


class OpLog:
    """Collects records, and keeps a running hash of all of them. `sink` takes them in chunks, each
    the MessagePack array of its records.

    `written` takes what the host wrote, in the order of its records. `transferred` takes every slot
    that a kernel sends or receives, in a run that requests it, and `printed` every line that one
    prints. `recorder` takes the tables of the SIP, in a run with records; `step` is then the step
    of the kernel whose call is being carried out. `last_ps` is the latest end of an operation.
    """

    def __init__(
        self,
        sink: Callable[[bytes], None] | None,
        written: Callable[[bytes], None] | None = None,
        transferred: Callable[[SlotTransfer], None] | None = None,
        printed: Callable[[DevicePrint], None] | None = None,
        recorder: RunRecorder | None = None,
    ) -> None:
        self._sink, self._written, self.transferred = sink, written, transferred
        self.printed, self.recorder = printed, recorder
        self._rows = None if recorder is None else OpRows(recorder)
        self.steps = None if recorder is None else StepRows(recorder)
        self.step = NONE
        self._chunk: list[OpRecord] = []
        self._recordings: list[list[OpRecord]] = []
        self._hash = sha256()
        self._count = self.last_ps = 0
        self._latest: OpRecord | None = None

    def add(
        self,
        record: OpRecord,
        requested_ps: int | None = None,
        cause: str = Cause.NONE,
        times: QueueTimes | None = None,
        step: int = NONE,
    ) -> None:
        """Append one completed operation.

        It was requested at `requested_ps`, without which it started at once, and has waited for
        `cause` since. In a run with records, its packets have queued for `times`, and a call in
        `step` has issued it.
        """
        if type(record) is not OpRecord:
            raise TypeError(f"{record!r} is no op record")
        if self._rows is not None:
            begin_ps = record.start_ps if requested_ps is None else requested_ps
            self._rows.add(record, begin_ps, cause, times, step)
        # A comparison: `max` takes a third of this method.
        if record.end_ps > self.last_ps:  # noqa: PLR1730
            self.last_ps = record.end_ps
        self._count += 1
        self._latest = record
        self._chunk.append(record)
        for recording in self._recordings:
            recording.append(record)
        # Long runs have more records than fit into memory.
        if len(self._chunk) >= CHUNK_RECORDS:
            self.flush()

    def add_crossing(  # noqa: PLR0913 - the columns of its row
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
        step: int,
    ) -> None:
        """Append the crossing of a transfer to another SIP, which waits for the link only."""
        record = OpRecord(
            engine=engine,
            name=name,
            start_ps=start_ps,
            end_ps=end_ps,
            address=address,
            nbytes=nbytes,
        )
        self.add(record, requested_ps, Cause.LINK, times, step)

    def ended_now(self, now_ps: int, cube: int, pe: int) -> int:
        """The index of the latest record if it is of this PE and ends now; else -1."""
        latest = self._latest
        if latest is None or (latest.end_ps, latest.cube, latest.pe) != (now_ps, cube, pe):
            return NONE
        return self._count - 1

    def begin_recording(self, records: list[OpRecord] | None = None) -> list[OpRecord]:
        """A list that receives every record that is added from now on, with or without a sink; by
        default a new one.
        """
        if records is None:
            records = []
        self._recordings.append(records)
        return records

    def end_recording(self, records: list[OpRecord]) -> None:
        """Add nothing more to a list of `begin_recording`."""
        # By identity: two recordings that have received nothing are equal.
        self._recordings = [each for each in self._recordings if each is not records]

    def add_written(self, data: bytes) -> None:
        """Pass on the bytes of a write of the host, before its record is added.

        The digest has these bytes from the memories.
        """
        if self._written is not None:
            self._written(data)

    def flush(self) -> None:
        """Hash the collected records, and pass them on."""
        if self._rows is not None:
            self._rows.flush()
        if self.steps is not None:
            self.steps.flush()
        if not self._chunk:
            return
        # Without the header of the array, so that the hash is that of the records one by one and
        # does not depend on where the chunks were cut.
        encoded = _encoder.encode(self._chunk)
        self._hash.update(memoryview(encoded)[_array_header_bytes(len(self._chunk)) :])
        if self._sink is not None:
            self._sink(encoded)
        self._chunk = []

    def digest(self, memories: Iterable["Memory"]) -> str:
        """Hexadecimal SHA-256 over all records, then over the memories in the order given."""
        self.flush()
        total = self._hash.copy()
        for memory in memories:
            for offset, content in memory.contents():
                total.update(f"{memory.name}@{offset}".encode())
                total.update(content)
        return total.hexdigest()


def _array_header_bytes(length: int) -> int:
    """The bytes of MessagePack before the elements of an array."""
    return 1 if length < 16 else 3
