"""The findings of a check: races and undefined values, one for each pair of lines."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kernbench.explain.check.accesses import Accessor, TrackedAccess
from kernbench.explain.check.clocks import CommandClocks
from kernbench.explain.check.overlaps import overlaps
from kernbench.explain.check.races import Race, races
from kernbench.explain.check.remedies import common_point, remedy
from kernbench.explain.check.replay import CallReplay
from kernbench.explain.check.run_calls import CallRow, SipCalls, TensorRow
from kernbench.explain.check.threads import ValueObserver
from kernbench.explain.check.undefined import UndefinedUse, UndefinedValues, tensor_offset
from kernbench.explain.check.undefined_ranges import UndefinedOrigin
from kernbench.explain.records import RunRecords
from runtime.core.run_tables import NONE

_Pair = tuple[int, int, int]
"""A SIP, and the numbers of two calls."""


class FoundPlace(NamedTuple):
    """A call of a kernel that was launched in the line `launch`, or a copy of the host: where and
    when. Times may be -1, for none.
    """

    operation: str
    line: str
    sip: int
    cube: int
    pe: int
    kernel: str
    launch: str
    program: str
    stream: int
    begin_ps: int
    end_ps: int


class FoundRace(NamedTuple):
    """Two accesses to an element that nothing orders, the first in this run first; `pairs` of
    calls are at these lines.

    `is_strict` if only the order by tensor or PE orders them, on which CUDA has no equal.
    """

    tensor: str
    made: str
    element: int
    first: FoundPlace
    second: FoundPlace
    common: str
    remedy: str
    is_strict: bool
    pairs: int


class FoundUndefined(NamedTuple):
    """A use of an element that nothing has written: of a tensor, or of a value of a kernel.

    `read` is the first call that read it, and `use` the first that needs its value, with all
    `uses` at that line.
    """

    tensor: str
    made: str
    element: int
    read: FoundPlace | None
    use: FoundPlace
    is_note: bool
    uses: int


class Findings(NamedTuple):
    """All findings of a run; notes are none of them."""

    races: tuple[FoundRace, ...]
    undefined: tuple[FoundUndefined, ...]
    notes: tuple[FoundUndefined, ...]
    calls: int

    @property
    def reports(self) -> int:
        """The number of reports."""
        return len(self.races) + len(self.undefined)


def check_records(records: RunRecords, *, is_strict: bool = False) -> Findings:
    """The findings of a recorded run; with `is_strict`, commands are ordered as in CUDA."""
    sips = [SipCalls(records, sip) for sip in records.sips]
    values = UndefinedValues(sips)
    begun = _begun(sips, values, is_strict=False)
    reports = _Reports({each.sip: each for each in sips})
    found_races, of_streams = list[FoundRace](), list[FoundRace]()
    if is_strict:
        of_streams = reports.races(sips, _begun(sips, None, is_strict=True), is_strict=True)
    # What the strict order orders, the other one orders, too.
    if of_streams or not is_strict:
        found_races = reports.races(sips, begun, is_strict=False)
    pairs = {(each.first, each.second) for each in found_races}
    found_races += [each for each in of_streams if (each.first, each.second) not in pairs]
    return Findings(
        tuple(found_races),
        tuple(reports.undefined(values.uses, is_note=False)),
        tuple(reports.undefined(map(_as_use, values.notes), is_note=True)),
        sum(map(len, sips)),
    )


def _begun(
    sips: Sequence[SipCalls], observer: ValueObserver | None, *, is_strict: bool
) -> CommandClocks:
    """The clocks with which commands begin, by a replay whose other clocks are not kept."""
    replay = CallReplay(sips, observer, {}, is_strict=is_strict)
    replay.run()
    return replay.begun


def without_times(findings: Findings) -> Findings:
    """The findings of records that have no times."""
    return findings._replace(
        races=tuple(
            each._replace(first=_untimed(each.first), second=_untimed(each.second))
            for each in findings.races
        ),
        undefined=tuple(map(_untimed_use, findings.undefined)),
        notes=tuple(map(_untimed_use, findings.notes)),
    )


def _untimed_use(use: FoundUndefined) -> FoundUndefined:
    read = None if use.read is None else _untimed(use.read)
    return use._replace(read=read, use=_untimed(use.use))


def _untimed(place: FoundPlace) -> FoundPlace:
    return place._replace(begin_ps=NONE, end_ps=NONE)


def _as_use(note: tuple[UndefinedOrigin, Accessor, CallRow]) -> UndefinedUse:
    return UndefinedUse(*note)


class _Reports:
    """Makes reports of findings."""

    def __init__(self, sips: dict[int, SipCalls]) -> None:
        self._sips = sips

    def races(
        self, sips: Sequence[SipCalls], begun: CommandClocks, *, is_strict: bool
    ) -> list[FoundRace]:
        """One report for the races of a pair of lines, the first one in the order of the run.
        `begun` are the clocks of all commands.
        """
        watched = {each.sip: overlaps(each, begun) for each in sips}
        if not any(watched.values()):
            return []
        # Few programs have accesses that may be in a race: they are replayed again, with these.
        replay = CallReplay(sips, None, watched, is_strict=is_strict)
        replay.run()
        # By lines, the pairs of calls: a block may lie in several pieces of memory.
        pairs, first = defaultdict[tuple[str, ...], set[_Pair]](set), dict[tuple[str, ...], Race]()
        for race in races(replay.accesses):
            one, other = sorted(
                (each.row.line, each.row.operation) for each in (race.first, race.second)
            )
            key = (*one, *other)
            pairs[key].add((race.first.accessor.sip, race.first.row.call, race.second.row.call))
            if key not in first or _order(race) < _order(first[key]):
                first[key] = race
        keys = sorted(first, key=lambda key: _order(first[key]))
        return [self._race(first[key], len(pairs[key]), begun, is_strict=is_strict) for key in keys]

    def _race(self, race: Race, count: int, begun: CommandClocks, *, is_strict: bool) -> FoundRace:
        first, second = race.first, race.second
        sip = first.accessor.sip
        calls, item = self._sips[sip], first.block.layout.item_bytes
        name, made, offset = "memory of no tensor", "", race.address
        if race.tensor != NONE:
            tensor = calls.tensors[race.tensor]
            name, made, item = tensor.name, tensor.line, max(item, tensor.item_bytes)
            offset = tensor_offset(calls, race.tensor, race.address)
        places = [self._place(each.accessor, each.row) for each in (first, second)]
        places.sort(key=lambda each: each.begin_ps)
        return FoundRace(
            tensor=name,
            made=made,
            element=offset // item,
            first=places[0],
            second=places[1],
            common=common_point(first, second, begun, calls),
            remedy=remedy(first, second, calls, is_strict=is_strict),
            is_strict=is_strict,
            pairs=count,
        )

    def undefined(self, uses: Iterable[UndefinedUse], *, is_note: bool) -> list[FoundUndefined]:
        """One report for the uses at a line of what was made at a line."""
        counts, first = dict[tuple[str, ...], int](), dict[tuple[str, ...], UndefinedUse]()
        for use in uses:
            key = self._made(use.origin)[1], use.row.line, use.row.operation
            counts[key] = counts.get(key, 0) + 1
            first.setdefault(key, use)
        return [self._undefined(use, counts[key], is_note=is_note) for key, use in first.items()]

    def _undefined(self, use: UndefinedUse, count: int, *, is_note: bool) -> FoundUndefined:
        origin = use.origin
        name, made = self._made(origin)
        read = None
        if origin.read is not None and origin.read[1] is not use.row:
            read = self._place(*origin.read)
        return FoundUndefined(
            tensor=name,
            made=made,
            element=origin.offset // self._item_bytes(origin),
            read=read,
            use=self._place(use.accessor, use.row),
            is_note=is_note,
            uses=count,
        )

    def _made(self, origin: UndefinedOrigin) -> tuple[str, str]:
        """The name and the line of what is undefined."""
        if origin.tensor == NONE:
            _, row = self._sips[origin.sip].row_of(origin.call)
            return "a value of tl.empty", row.line
        tensor: TensorRow = self._sips[origin.sip].tensors[origin.tensor]
        return tensor.name, tensor.line

    def _item_bytes(self, origin: UndefinedOrigin) -> int:
        blocks = () if origin.read is None else origin.read[1].blocks
        read = blocks[0].layout.item_bytes if blocks else 1
        if origin.tensor == NONE:
            return read
        # The host copies bytes.
        return max(read, self._sips[origin.sip].tensors[origin.tensor].item_bytes)

    def _place(self, accessor: Accessor, row: CallRow) -> FoundPlace:
        program, command = accessor.program, accessor.command
        commands = self._sips[accessor.sip].commands
        number = command if program is not None or row.command == NONE else row.command
        known = commands.get(number)
        begin_ps, end_ps = row.begin_ps, row.end_ps
        return FoundPlace(
            operation=row.operation,
            line=row.line,
            sip=accessor.sip,
            cube=NONE if program is None else program.cube,
            pe=NONE if program is None else program.pe,
            kernel="" if program is None else program.kernel,
            launch="" if known is None or program is None else known.line,
            program=accessor.grid,
            stream=NONE if known is None else known.stream,
            begin_ps=begin_ps if known is None or program is not None else known.begun_ps,
            end_ps=end_ps if known is None or program is not None else known.end_ps,
        )


def _order(race: Race) -> tuple[int, ...]:
    """The order of reports: by the times of both calls, then by their numbers."""
    one, other = race.first, race.second
    return (*_times(other), *_times(one), race.address)


def _times(access: TrackedAccess) -> Sequence[int]:
    return access.row.begin_ps, access.accessor.sip, access.row.call
