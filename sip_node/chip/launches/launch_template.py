"""A launch that was simulated, as the template of those that repeat it.

It has all that the launch has left behind: records, rows of the tables of a run, the loads of
servers, what engines have done, and the answers to earlier commands that arrived at the host
meanwhile. A repetition leaves the same behind, at a later time, with other tensors, and with the
values of those.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from runtime.language.value import Array
from sip_node.chip.host.commands import CommandDone
from sip_node.chip.launch_keys import LaunchKey
from sip_node.chip.launches.idle_engines import EngineChanges
from sip_node.chip.launches.launch_values import BlockUse, BytesInMemory
from sip_node.chip.launches.learned_slice import LearnedSlice, SliceChanges
from sip_node.chip.launches.recorded_numbers import RecordedNumbers
from sip_node.chip.launches.relocation import Relocation
from sip_node.chip.records.kept_calls import KeptCalls

if TYPE_CHECKING:
    from sip_node.chip.launches.server_states import ServerChanges
    from sip_node.chip.records.kept.kept_records import KeptRecords


MOST_PLACES = 16
"""Places of the tensors of a launch for which it is known whether it can be repeated there."""


class SlotsInTurn(Protocol):
    """Slots of memory that are taken in turn: their blocks, and how far each is from its first
    place now.
    """

    @property
    def parts(self) -> Sequence[object]:
        """The slots that are used, in the order of the parts of the records."""
        ...

    def distances(self) -> tuple[int, ...]:
        """The distances of the blocks in each of `parts` from those of the launch, now."""
        ...

    def repeat(self) -> None:
        """Let the slots have the turns that they have behind a launch."""
        ...


class ComputedValues(Protocol):
    """The values of the records of a launch, in each of its repetitions."""

    def blocks(self, uses: Iterable[BlockUse]) -> list[BytesInMemory]:
        """The blocks of memory that they read and write, which move together."""
        ...

    def set_number(self, number: int, index: int, value: float) -> None:
        """Let an input of a record be another number."""
        ...

    def compute(self) -> Array:
        """Compute all values, and write those of memories; returns the CRC-32 of each record."""
        ...


class AnswerArrival(NamedTuple):
    """The answer to an earlier command arrives at the host, `after_ps` behind the begin of the
    launch, when `records` of the launch are in the log; `passenger` is its number among those that
    were on their way.
    """

    after_ps: int
    records: int
    passenger: int


class PassengerStage(NamedTuple):
    """An answer that is still on its way at the end: its head is at a stage of its route
    `after_ps` behind the begin of the launch, and its tail `tail_after_ps`.
    """

    passenger: int
    after_ps: int
    step: int
    tail_after_ps: int


class PlacedBlocks(NamedTuple):
    """The blocks of a repetition in memory: how far each part of the tensors has moved, and what
    becomes of the slices of HBM.
    """

    distances: tuple[int, ...]
    slices: Sequence[SliceChanges]


class LaunchRepetition(NamedTuple):
    """The differences of a repetition: how far each part of the tensors has moved, the numbers of
    the PEs, and what becomes of the slices of HBM.
    """

    distances: tuple[int, ...]
    numbers: Sequence[bytes]
    slices: Sequence[SliceChanges]


class RecordedRows(NamedTuple):
    """The rows of a run with records: those of steps, programs and calls, and how many steps,
    programs and records there were before; `begun` steps and `kernels` kernels have begun.
    """

    steps: bytes
    programs: tuple[bytes, ...]
    step: int
    program: int
    record: int
    begun: int
    kernels: int
    calls: KeptCalls


class LaunchChanges(NamedTuple):
    """The changes by a launch that began at `begin_ps`; all other times count from its begin.

    `services` are those of the servers outside of HBM. `sent` and `delivered` are packets, `events`
    those of the engine. `arrivals` and `stages` are answers to earlier commands. The kernels began
    at `start_after_ps`, and `done` is the answer of the launch.
    """

    servers: "ServerChanges"
    engines: EngineChanges
    services: Sequence[Any]
    slices: Mapping[int, LearnedSlice]
    sent: int
    delivered: int
    events: int
    arrivals: Sequence[AnswerArrival]
    stages: Sequence[PassengerStage]
    done: CommandDone
    start_after_ps: int
    duration_ps: int
    begin_ps: int


class LaunchTemplate:
    """The template of a launch. The parts of its records are those of `slots`, and those of
    `relocation` behind them; `rows` are there in a run with records.
    """

    def __init__(
        self,
        *,
        records: "KeptRecords",
        slots: Sequence[SlotsInTurn],
        relocation: Relocation,
        numbers: RecordedNumbers,
        values: ComputedValues | None,
        changes: LaunchChanges,
        rows: RecordedRows | None,
    ) -> None:
        # In C only, where launches are repeated.
        from sip_node.chip.launches.record_parts import uses_of

        self._records, self._relocation, self._slots = records, relocation, slots
        self._values, self._numbers = values, numbers
        self.changes, self.rows = changes, rows
        self._of_slots = sum(len(each.parts) for each in slots)
        self._distances: tuple[int, ...] = (0,) * (self._of_slots + len(relocation.parts))
        # By the addresses of all pointers, while the page tables have these mappings.
        self._places: dict[tuple[int, ...], PlacedBlocks | None] = {}
        self._mapped = 0
        self._blocks = [] if values is None else [*map(values.blocks, uses_of(records))]
        self._checksums: Array | None = None
        self._extents: list[int] | None = None

    @property
    def size(self) -> int:
        """The number of its records."""
        return len(self._records)

    def fits(self, key: LaunchKey, now_ps: int) -> "LaunchRepetition | None":
        """The differences of a launch that begins now, with the addresses and numbers of a key;
        None where it would not be the same.
        """
        changes = self.changes
        if not (changes.servers.is_alike(now_ps) and changes.engines.is_alike(now_ps)):
            return None
        placed = self._placed(key.addresses)
        if placed is None or not all(each.channels.is_alike(now_ps) for each in placed.slices):
            return None
        of_slots = [distance for each in self._slots for distance in each.distances()]
        return LaunchRepetition((*of_slots, *placed.distances), key.numbers, placed.slices)

    def _placed(self, addresses: Sequence[Sequence[int]]) -> PlacedBlocks | None:
        """The blocks with pointers to `addresses`; None where they cannot be there.

        A loop makes equal launches: the places of an earlier one are those of the next, unless
        page tables have changed.
        """
        mapped = self._relocation.mapped
        if mapped != self._mapped or len(self._places) > MOST_PLACES:
            self._mapped = mapped
            self._places.clear()
        # Launches with one key have as many pointers on each PE.
        flat = tuple([each for of_pe in addresses for each in of_pe])
        if flat not in self._places:
            self._places[flat] = self._place(addresses)
        return self._places[flat]

    def _place(self, addresses: Sequence[Sequence[int]]) -> PlacedBlocks | None:
        distances = self._relocation.moved(addresses)
        if distances is None:
            return None
        slices, served = self.changes.slices, list[SliceChanges]()
        for node, moved in self._relocation.by_memory(distances).items():
            # A memory that is no slice of HBM serves blocks alike at all places.
            if node in slices:
                of_slice = slices[node].moved(moved)
                if of_slice is None:
                    return None
                served.append(of_slice)
        return PlacedBlocks(distances, served)

    def repeat(self, repetition: "LaunchRepetition", begin_ps: int) -> None:
        """Leave behind what the launch does that begins at `begin_ps`, but for records; it has been
        changed to it.
        """
        changes = self.changes
        changes.servers.repeat(begin_ps)
        changes.engines.repeat(begin_ps)
        for slots in self._slots:
            slots.repeat()
        for each in changes.services:
            each.repeat(begin_ps - changes.begin_ps, 1, 1)
        for of_slice in repetition.slices:
            of_slice.channels.repeat(begin_ps)
            for each in of_slice.services:
                each.repeat(begin_ps - of_slice.begin_ps, 1, 1)
        self._checksums = None if self._values is None else self._values.compute()

    def block_distances(self) -> list[int]:
        """The distance by which each block of the calls has moved in the latest repetition; none
        if all are where they were.
        """
        parts = self._relocation.parts
        distances = self._distances[self._of_slots :]
        if self.rows is None or not any(distances):
            return []
        if self._extents is None:
            self._extents = self.rows.calls.extents([part.extent.physical for part in parts])
        return [distances[extent] if extent >= 0 else 0 for extent in self._extents]

    def number_flows(self, later: dict[tuple[int, int], int]) -> None:
        """Let the numbers of transfers to other SIPs rise by `later[source sip, target sip]`."""
        self._records.number_flows(later)

    def enter(self, log: Any, first: int, behind: int, begin_ps: int, steps: int) -> None:
        """Enter records of a repetition that began behind `steps` steps of programs into a log."""
        self._records.enter(log, first, behind, begin_ps, steps, self._checksums)

    def change(self, repetition: "LaunchRepetition") -> None:
        """Move the blocks of records and values, and give them the numbers of the launch."""
        distances, before = repetition.distances, self._distances
        if distances != before:
            self._records.move(distances)
            for of_part, now, was in zip(self._blocks, distances, before, strict=False):
                for block in of_part:
                    block.offset += now - was
            self._distances = distances
        for number, index, value in self._numbers.changed(repetition.numbers):
            self._records.set_number(number, index, value)
            if self._values is not None:
                self._values.set_number(number, index, value)
