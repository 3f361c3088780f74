"""Writes a trace for Perfetto: its own format of packets, with tracks in groups.

SIPs, cubes, PEs and engines are nested tracks. Flows join the send of a message with its arrival.
Perfetto counts whole nanoseconds: a time is rounded down, so slices that follow each other still
do, and the arguments have the picoseconds. Packets are compressed in blocks, as Perfetto compresses
those of its own recordings: texts repeat in them.
"""

import zlib
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from typing import Any

from kernbench.explain.trace.counters import Counter
from kernbench.explain.trace.timeline import HOST, PROGRAM, Arguments, Slices, TrackPath
from runtime.core.errors import UsageError
from runtime.core.run_tables import OPS
from runtime.core.simtime import PS_PER_NS

Flows = dict[tuple[int, int], int]
"""The flow of an operation, by SIP and row in its table `ops`."""
_SEQUENCE = 1
_NUMBERED = ("cube", "PE")
_FIRST = {PROGRAM: -2, HOST: -1}
_BEHIND_NUMBERS = 1 << 20
_BLOCK_PACKETS = 16_384
_FAST = 1
"""Level of compression: higher ones take twice the time for 10 % of the size."""


def _imported(module: str) -> Any:
    """A module of the package perfetto. Raises `UsageError` where it is not installed."""
    try:
        return import_module(module)
    except ImportError as error:
        raise UsageError(
            "a trace for Perfetto needs the package perfetto: pip install 'kernbench[trace]'"
        ) from error


class PerfettoFile:
    """A file of packets, written by `write`, of a machine with that many SIPs.

    `sends` and `arrivals` have the flows of messages.

    It is whole after `finish`.
    """

    def __init__(
        self, write: Callable[[bytes], object], sips: int, sends: Flows, arrivals: Flows
    ) -> None:
        protos = _imported("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
        self._write_bytes = write
        self._new_trace, self._block = protos.Trace, protos.Trace()
        self._sends, self._arrivals = sends, arrivals
        self._uuid_of_path: dict[TrackPath, int] = {}
        self._event, self._counter = protos.TrackEvent, protos.CounterDescriptor
        self._explicit = protos.TrackDescriptor.ChildTracksOrdering.EXPLICIT
        self._digits = len(str(sips - 1))
        self.events = 0

    def add_slices(self, sip: int, slices: Slices) -> None:
        """Write a track, with a track for each lane."""
        lanes: dict[int, list[tuple[int, int, int, Slices, int]]] = {}
        for depth, each in enumerate((slices, slices.within)):
            if each is not None:
                for index, lane in enumerate(each.lanes.tolist()):
                    begin_ps, end_ps = int(each.begins_ps[index]), int(each.ends_ps[index])
                    lanes.setdefault(lane, []).append((begin_ps, -end_ps, depth, each, index))
        for lane, members in sorted(lanes.items()):
            last = slices.path[-1] + (f" #{lane + 1}" if lane else "")
            track = self._track((*slices.path[:-1], last))
            members.sort(key=lambda member: member[:3])
            self._nested(sip, track, members)

    def add_counter(self, counter: Counter) -> None:
        """Write a counter with its values."""
        track = self._track(counter.path, unit=counter.unit)
        times = (counter.times_ps // PS_PER_NS).tolist()
        for time_ns, value in zip(times, counter.values.tolist(), strict=True):
            event = self._timed_event(time_ns, self._event.TYPE_COUNTER, track)
            if isinstance(value, int):
                event.counter_value = value
            else:
                event.double_counter_value = value

    def finish(self) -> None:
        """Write what is left."""
        if self._block.packet:
            compressed = self._new_trace()
            data = zlib.compress(self._block.SerializeToString(), _FAST)
            compressed.packet.add().compressed_packets = data
            self._write_bytes(compressed.SerializeToString())
            # `Clear` would keep the memory of all packets.
            self._block = self._new_trace()

    def _nested(
        self, sip: int, track: int, members: Iterable[tuple[int, int, int, Slices, int]]
    ) -> None:
        open_ends: list[int] = []
        for begin_ps, minus_end_ps, _, slices, index in members:
            while open_ends and open_ends[-1] <= begin_ps:
                self._end(track, open_ends.pop())
            self._begin(sip, track, begin_ps, slices, index)
            open_ends.append(-minus_end_ps)
        while open_ends:
            self._end(track, open_ends.pop())

    def _begin(self, sip: int, track: int, begin_ps: int, slices: Slices, index: int) -> None:
        event = self._timed_event(begin_ps // PS_PER_NS, self._event.TYPE_SLICE_BEGIN, track)
        event.name = slices.names[index]
        event.categories.append(slices.columns.table.name)
        if slices.columns.table is OPS:
            operation = (sip, int(slices.rows[index]))
            if operation in self._sends:
                event.flow_ids.append(self._sends[operation])
            if operation in self._arrivals:
                event.terminating_flow_ids.append(self._arrivals[operation])
        _annotate(event, slices.arguments(index))

    def _end(self, track: int, end_ps: int) -> None:
        self._timed_event(end_ps // PS_PER_NS, self._event.TYPE_SLICE_END, track)

    def _track(self, path: TrackPath, unit: str = "") -> int:
        """The number of a track, which is described with those above it when it is first used."""
        known = self._uuid_of_path.get(path)
        if known is not None:
            return known
        *above, name = path
        parent = self._track(tuple(above)) if above else 0
        uuid = self._uuid_of_path[path] = len(self._uuid_of_path) + 1
        packet = self._packet()
        described = packet.track_descriptor
        described.uuid, described.name = uuid, name if above else self._root_name(name)
        described.child_ordering = self._explicit
        described.sibling_order_rank = _rank(name, uuid)
        if parent:
            described.parent_uuid = parent
        if unit:
            described.counter.unit_name = unit
        return uuid

    def _root_name(self, name: str) -> str:
        """SIP 3 of 64 is SIP 03: tracks without parent are in the order of their names."""
        kind, _, number = name.partition(" ")
        return f"{kind} {number.zfill(self._digits)}"

    def _timed_event(self, time_ns: int, kind: int, track: int) -> Any:
        """A new event, to be filled before the next one."""
        self.events += 1
        packet = self._packet()
        packet.timestamp = time_ns
        event = packet.track_event
        event.type, event.track_uuid = kind, track
        return event

    def _packet(self) -> Any:
        if len(self._block.packet) >= _BLOCK_PACKETS:
            self.finish()
        packet = self._block.packet.add()
        packet.trusted_packet_sequence_id = _SEQUENCE
        return packet


def _rank(name: str, uuid: int) -> int:
    """The position among the tracks of one group: by number, the others in the order of use."""
    kind, _, number = name.partition(" ")
    if kind in _NUMBERED:
        return int(number)
    return _FIRST.get(name, _BEHIND_NUMBERS + uuid)


def _annotate(event: Any, arguments: Arguments) -> None:
    for name, value in arguments.items():
        annotation = event.debug_annotations.add()
        annotation.name = name
        if isinstance(value, int):
            annotation.int_value = value
        else:
            annotation.string_value = value


def flow_numbers(pairs: Iterator[tuple[tuple[int, int], tuple[int, int]]]) -> tuple[Flows, Flows]:
    """The flows of sends and arrivals, each given as (SIP, row)."""
    sends, arrivals = Flows(), Flows()
    for number, (send, arrival) in enumerate(pairs, start=1):
        sends[send] = arrivals[arrival] = number
    return sends, arrivals
