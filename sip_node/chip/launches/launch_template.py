"""A launch that was simulated, as the template of those that repeat it.

It has all that the launch has left behind: records, rows of the tables of a run, the loads of
servers, what engines have done, and the answers to earlier commands that arrived at the host
meanwhile. A repetition leaves the same behind, at a later time, with other tensors, and with the
values of those.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from msgspec import structs

from runtime.core.compiled.choice import IS_COMPILED
from runtime.core.trace import Operand, OpRecord
from runtime.language.value import Array
from sip_node.chip.host.commands import CommandDone
from sip_node.chip.launches.idle_engines import EngineChanges
from sip_node.chip.launches.launch_values import LaunchValues
from sip_node.chip.launches.relocation import BlockUse, Relocation
from sip_node.chip.launches.slice_traffic import ServedSlice, SliceTraffic
from sip_node.chip.launches.tile_slots import TileSlots

if TYPE_CHECKING or IS_COMPILED:
    from sip_node.compiled.repeated_records import RepeatedRecords
    from sip_node.compiled.server_states import ServerChanges, ServerStates


class MovedPart(Protocol):
    """Blocks that move together."""

    @property
    def uses(self) -> Sequence[BlockUse]:
        """The blocks."""
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


class SliceChanges(NamedTuple):
    """What a launch changes of the channels of a slice, and their services in one that began at
    `begin_ps`.
    """

    channels: "ServerChanges"
    services: Sequence[Any]
    begin_ps: int


class LearnedSlice:
    """A slice of HBM in a launch, with `learned` changes; `states` are its channels.

    What it does with blocks at other places of a round over the channels is found by its traffic.
    """

    def __init__(
        self,
        learned: SliceChanges,
        traffic: SliceTraffic,
        states: "ServerStates",
        bins: Sequence[Any],
        round_bytes: int,
    ) -> None:
        self._learned, self._traffic, self._states = learned, traffic, states
        self._bins, self._round_bytes = bins, round_bytes
        # By the distances modulo the round: None where it serves the packets at other times.
        self._known: dict[tuple[tuple[int, int], ...], SliceChanges | None] = {}
        self._reference: ServedSlice | None = None

    def moved(self, distances: Mapping[int, int]) -> SliceChanges | None:
        """What a launch changes of the slice if the blocks in the extent at each address have moved
        by a distance; None if its answers leave at other times.
        """
        turned = {begin: each % self._round_bytes for begin, each in distances.items()}
        if not any(turned.values()):
            return self._learned
        key = tuple(sorted(turned.items()))
        if key not in self._known:
            self._known[key] = self._found(turned)
        return self._known[key]

    def _found(self, turned: Mapping[int, int]) -> SliceChanges | None:
        if self._reference is None:
            self._reference = self._traffic.served(dict.fromkeys(turned, 0))
        reference = self._reference
        # The model by itself has to do what the slice has done.
        if reference is None or not reference.changes.equals(self._learned.channels):
            return None
        served = self._traffic.served(turned)
        if (
            served is None
            or served.answers != reference.answers
            or served.queued_ps != reference.queued_ps
        ):
            return None
        services = [
            each.onto(bins) for each, bins in zip(served.services, self._bins, strict=True)
        ]
        return SliceChanges(served.changes.onto(self._states), services, 0)


class Repetition(NamedTuple):
    """What differs in a repetition: how far each part of the tensors has moved, and what becomes of
    the slices of HBM.
    """

    distances: tuple[int, ...]
    slices: Sequence[SliceChanges]


class RecordedRows(NamedTuple):
    """The rows of a run with records: those of steps and of programs, and how many of each, and of
    records, there were before; `begun` steps and `programs` kernels have begun.
    """

    steps: bytes
    programs: tuple[bytes, ...]
    step: int
    program: int
    record: int
    begun: int
    kernels: int


class LaunchTemplate:
    """The template of a launch; times are relative to its begin."""

    def __init__(
        self,
        records: "RepeatedRecords",
        originals: Sequence[OpRecord],
        relocation: Relocation,
        values: LaunchValues | None,
        servers: "ServerChanges",
        engines: EngineChanges,
        slots: TileSlots,
        services: Sequence[Any],
        slices: Mapping[int, LearnedSlice],
        rows: RecordedRows | None,
        arrivals: Sequence[AnswerArrival],
        stages: Sequence[PassengerStage],
        done: CommandDone,
        start_after_ps: int,
        duration_ps: int,
        packets: tuple[int, int],
        events: int,
        begin_ps: int,
    ) -> None:
        self._records, self._originals = records, originals
        self._relocation, self._values = relocation, values
        self._servers, self._engines, self._services = servers, engines, services
        self._slices, self._slots = slices, slots
        self._parts: Sequence[MovedPart] = (*relocation.parts, *slots.parts)
        self.rows, self.arrivals, self.stages = rows, arrivals, stages
        self.done, self.start_after_ps, self.duration_ps = done, start_after_ps, duration_ps
        self.packets, self.events, self.begin_ps = packets, events, begin_ps
        self._distances: tuple[int, ...] = (0,) * len(self._parts)
        self._inputs: dict[int, list[Operand | float]] = {}
        self._checksums: Array | None = None

    @property
    def size(self) -> int:
        """The number of its records."""
        return len(self._originals)

    def fits(self, addresses: Sequence[Sequence[int]], now_ps: int) -> "Repetition | None":
        """What differs in a launch that begins now, with pointers to `addresses`; None where that
        launch would not be the same.
        """
        if not (self._servers.is_alike(now_ps) and self._engines.is_alike(now_ps)):
            return None
        distances = self._relocation.moved(addresses)
        if distances is None:
            return None
        served = list[SliceChanges]()
        for node, moved in self._relocation.by_memory(distances).items():
            # A memory that is no slice of HBM serves blocks alike at all places.
            if node in self._slices:
                changes = self._slices[node].moved(moved)
                if changes is None or not changes.channels.is_alike(now_ps):
                    return None
                served.append(changes)
        return Repetition((*distances, *self._slots.distances()), served)

    def repeat(self, repetition: "Repetition", begin_ps: int) -> None:
        """Leave behind what the launch does that begins at `begin_ps`, but for records."""
        self._relocate(repetition.distances)
        self._servers.repeat(begin_ps)
        self._engines.repeat(begin_ps)
        self._slots.repeat()
        for each in self._services:
            each.repeat(begin_ps - self.begin_ps, 1, 1)
        for changes in repetition.slices:
            changes.channels.repeat(begin_ps)
            for each in changes.services:
                each.repeat(begin_ps - changes.begin_ps, 1, 1)
        self._checksums = None if self._values is None else self._values.compute()

    def enter(self, first: int, behind: int, begin_ps: int) -> None:
        """Enter records of a repetition."""
        self._records.enter(first, behind, begin_ps, self._checksums)

    def _relocate(self, distances: tuple[int, ...]) -> None:
        """Move the blocks of records and values."""
        changed = dict[int, list[Operand | float]]()
        targets = dict[int, int]()
        for part, distance, before in zip(
            self._parts, distances, self._distances, strict=True
        ):
            if distance == before:
                continue
            for number, index, block in part.uses:
                inputs = changed.get(number)
                if inputs is None:
                    current = self._inputs.get(number)
                    inputs = changed[number] = list(
                        self._originals[number].inputs if current is None else current
                    )
                if index < 0:
                    targets[number] = block.address + distance
                else:
                    inputs[index] = structs.replace(block, address=block.address + distance)
            if self._values is not None:
                self._values.move(part.uses, distance - before)
        self._distances = distances
        for number, inputs in changed.items():
            self._inputs[number] = inputs
            self._records.relocate(number, targets.get(number, -1), tuple(inputs))
