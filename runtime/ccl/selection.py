"""The section `selection` of `ccl.yaml`: the algorithm of a call by collective, size and ranks."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated

from msgspec import Meta

from runtime.core.section import Section

_Count = Annotated[int, Meta(ge=1, le=1 << 30)]
_Name = Annotated[str, Meta(min_length=1)]


class Choice(Section, frozen=True):
    """A row of the selection: the algorithm for calls of at most `up_to_bytes` bytes a rank, in
    groups of at most `up_to_ranks` ranks; without a limit, of any size and in any group.
    """

    algorithm: _Name
    up_to_bytes: _Count | None = None
    up_to_ranks: _Count | None = None

    def matches(self, nbytes: int, ranks: int) -> bool:
        """Whether the row is for calls of this size in groups of this many ranks."""
        return _within(nbytes, self.up_to_bytes) and _within(ranks, self.up_to_ranks)

    def covers(self, other: "Choice") -> bool:
        """Whether the row matches all calls that another one matches."""
        return _within(other.up_to_bytes, self.up_to_bytes) and _within(
            other.up_to_ranks, self.up_to_ranks
        )

    @property
    def limits(self) -> str:
        """The calls that the row matches, in words."""
        limits = [
            f"{limit:,} {unit}"
            for limit, unit in ((self.up_to_bytes, "bytes"), (self.up_to_ranks, "ranks"))
            if limit is not None
        ]
        return f"calls of up to {' and '.join(limits)}"


class AlgorithmSelection(Section, frozen=True):
    """What `auto` runs: the first matching row of the collective, `default` where no row
    matches.
    """

    default: _Name
    by_size: Mapping[str, Annotated[tuple[Choice, ...], Meta(min_length=1)]]


def matching_row(rows: Sequence[Choice], nbytes: int, ranks: int) -> Choice | None:
    """The first row that matches, if there is one."""
    return next((row for row in rows if row.matches(nbytes, ranks)), None)


def unreachable_rows(section: str, rows: Sequence[Choice]) -> Iterator[tuple[str, str]]:
    """(key path, problem) of rows after which no row is reached, and of rows that no call
    reaches.
    """
    for index, row in enumerate(rows):
        before = next((other for other in rows[:index] if other.covers(row)), None)
        if before is None:
            continue
        if before.up_to_bytes is None and before.up_to_ranks is None:
            yield (
                f"{section}[{rows.index(before)}]",
                "this key is missing: up_to_bytes; only the last row is for calls of any size",
            )
            return
        key = "up_to_bytes" if row.up_to_bytes is not None else "up_to_ranks"
        limit = row.up_to_bytes if row.up_to_bytes is not None else row.up_to_ranks
        yield (
            f"{section}[{index}].{key}",
            f"is {limit}, but a row before matches {before.limits}: no call reaches this row",
        )


def _within(number: int | None, limit: int | None) -> bool:
    """Whether a number, or every number for None, is at most a limit."""
    return limit is None or (number is not None and number <= limit)
