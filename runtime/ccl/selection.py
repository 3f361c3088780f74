"""The section `selection` of `ccl.yaml`: the algorithm of a call by collective, size, ranks and
placement.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, NamedTuple

from msgspec import Meta

from runtime.core.config.section import Section

_Count = Annotated[int, Meta(ge=1, le=1 << 30)]
_Name = Annotated[str, Meta(min_length=1)]


class CallShape(NamedTuple):
    """A call as the rows of the selection distinguish it: `nbytes` of a rank's tensor, which lies
    on `cubes` cubes, in a group of `ranks` ranks; `on_grid` if these are a grid of SIPs.
    """

    nbytes: int
    ranks: int
    cubes: int = 1
    on_grid: bool = False


class Choice(Section, frozen=True):
    """A row of the selection: the algorithm of the calls within its limits; without limits, of all
    calls.

    Limits are the bytes of a rank's tensor, the cubes on which it lies, and the ranks of the group.
    With `on_grid` the row is for groups of all SIPs of a machine whose SIPs are a grid.
    """

    algorithm: _Name
    up_to_bytes: _Count | None = None
    up_to_ranks: _Count | None = None
    from_bytes: _Count | None = None
    from_cubes: _Count | None = None
    on_grid: bool = False

    def matches(self, call: CallShape) -> bool:
        """Whether the row is for a call."""
        return (
            _within(call.nbytes, self.up_to_bytes)
            and _within(call.ranks, self.up_to_ranks)
            and call.nbytes >= (self.from_bytes or 0)
            and call.cubes >= (self.from_cubes or 0)
            and (call.on_grid or not self.on_grid)
        )

    def covers(self, other: "Choice") -> bool:
        """Whether the row matches all calls that another one matches."""
        return (
            _within(other.up_to_bytes, self.up_to_bytes)
            and _within(other.up_to_ranks, self.up_to_ranks)
            and (other.from_bytes or 0) >= (self.from_bytes or 0)
            and (other.from_cubes or 0) >= (self.from_cubes or 0)
            and (other.on_grid or not self.on_grid)
        )

    @property
    def limits(self) -> str:
        """The calls that the row matches, in words; empty for all calls."""
        limits = [
            f"{preposition} {limit:,} {unit}"
            for preposition, limit, unit in (
                ("from", self.from_bytes, "bytes"),
                ("up to", self.up_to_bytes, "bytes"),
                ("up to", self.up_to_ranks, "ranks"),
                ("from", self.from_cubes, "cubes"),
            )
            if limit is not None
        ]
        return " and ".join([*limits, *(["on a grid"] if self.on_grid else [])])


class AlgorithmSelection(Section, frozen=True):
    """The algorithm that `auto` runs: the first matching row of the collective, `default` where no
    row matches.
    """

    default: _Name
    by_size: Mapping[str, Annotated[tuple[Choice, ...], Meta(min_length=1)]]


def matching_row(rows: Sequence[Choice], call: CallShape) -> Choice | None:
    """The first row that matches, if there is one."""
    return next((row for row in rows if row.matches(call)), None)


def unreachable_rows(section: str, rows: Sequence[Choice]) -> Iterator[tuple[str, str]]:
    """(key path, problem) of rows after which no row is reached, and of rows that no call
    reaches.
    """
    for index, row in enumerate(rows):
        if not _within(row.from_bytes or 0, row.up_to_bytes):
            problem = f"is {row.from_bytes}, but up_to_bytes is {row.up_to_bytes}: no call matches"
            yield f"{section}[{index}].from_bytes", problem
        before = next((other for other in rows[:index] if other.covers(row)), None)
        if before is None:
            continue
        if not before.limits:
            yield (
                f"{section}[{rows.index(before)}]",
                "this key is missing: up_to_bytes; only the last row is for calls of any size",
            )
            return
        key, limit = _first_limit(row)
        yield (
            f"{section}[{index}].{key}",
            f"is {limit}, but a row before matches calls {before.limits}: no call reaches this row",
        )


def _first_limit(row: Choice) -> tuple[str, object]:
    """The key and the value of the first limit of a row that has one."""
    keys = ("up_to_bytes", "up_to_ranks", "from_bytes", "from_cubes", "on_grid")
    return next((key, value) for key in keys if (value := getattr(row, key)) is not None)


def _within(number: int | None, limit: int | None) -> bool:
    """Whether a number, or every number for None, is at most a limit."""
    return limit is None or (number is not None and number <= limit)
