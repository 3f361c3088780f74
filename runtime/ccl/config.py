"""`ccl.yaml`: which collective algorithms exist, and the parameters of their queues."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from runtime.core.config_file import Section, default_file, parse, raise_first, read_text
from runtime.core.errors import ConfigError, nearest

BufferKind = Literal["tcm", "hbm", "sram"]
Backpressure = Literal["sleep"]
_Count = Annotated[int, Field(ge=1, le=1 << 30)]
_Index = Annotated[int, Field(ge=0, le=1 << 20)]
_SlotSize = Annotated[int, Field(ge=64, le=1 << 30, multiple_of=64)]
_Name = Annotated[str, Field(min_length=1)]

COLLECTIVES = (
    "all_reduce",
    "reduce",
    "broadcast",
    "all_gather",
    "all_gather_into_tensor",
    "reduce_scatter_tensor",
    "all_to_all_single",
)
AUTO = "auto"
POINT_TO_POINT = "point_to_point"
"""The algorithm of send and receive, whose queues join every rank of a group with every other one."""


class Defaults(Section):
    """What holds for every algorithm that does not say otherwise."""

    algorithm: _Name
    buffer_kind: BufferKind
    backpressure: Backpressure
    n_slots: _Count
    slot_size: _SlotSize
    vc_chunk_size: _Count
    ipcq_credit_size_bytes: _Count
    world_size: _Count | None = None


class Algorithm(Section):
    """One algorithm: four import paths or registry keys, and what it overrides; null is "not overridden"."""

    module: _Name
    topology: _Name
    mapper: _Name
    validator: _Name
    buffer_kind: BufferKind | None = None
    backpressure: Backpressure | None = None
    n_slots: _Count | None = None
    slot_size: _SlotSize | None = None
    vc_chunk_size: _Count | None = None
    ipcq_credit_size_bytes: _Count | None = None
    world_size: _Count | None = None
    root_cube: _Index | None = None
    n_elem: _Count | None = None


class Choice(Section):
    """The algorithm for calls of at most `up_to_bytes` bytes a rank, or of any size."""

    algorithm: _Name
    up_to_bytes: _Count | None = None


class AlgorithmSelection(Section):
    """What `auto` runs: by collective and size where there are rows, `default` elsewhere."""

    default: _Name
    by_size: Mapping[str, Annotated[tuple[Choice, ...], Field(min_length=1)]]


class CclFile(Section):
    """The whole file."""

    defaults: Defaults
    selection: AlgorithmSelection | None = None
    algorithms: Annotated[dict[_Name, Algorithm], Field(min_length=1)]


@dataclass(frozen=True)
class AlgorithmConfig:
    """One algorithm with every parameter decided. Sizes are bytes.

    `root_cube` None means the algorithm's own choice; `n_elem` None means the size of the tensor.
    """

    name: str
    module: str
    topology: str
    mapper: str
    validator: str
    buffer_kind: BufferKind
    backpressure: Backpressure
    n_slots: int
    slot_size: int
    vc_chunk_size: int
    ipcq_credit_size_bytes: int
    world_size: int | None = None
    root_cube: int | None = None
    n_elem: int | None = None

    @property
    def ring_bytes(self) -> int:
        """Bytes of one receive ring."""
        return self.n_slots * self.slot_size

    def ranks(self, sips: int) -> int:
        """The world size: what the file says, else one rank per SIP."""
        return sips if self.world_size is None else self.world_size


@dataclass(frozen=True)
class CclConfig:
    """A checked `ccl.yaml`; `source` is what its errors call it."""

    source: str
    file: CclFile

    def resolve(self, name: str | None = None) -> AlgorithmConfig:
        """The algorithm `name`, by default `defaults.algorithm`, with its overrides over the defaults.

        For `auto` it is `selection.default`. Raises `ConfigError` with the nearest name when there is no such algorithm.
        """
        defaults, selection = self.file.defaults, self.file.selection
        name = name or defaults.algorithm
        if name == AUTO and selection is not None:
            name = selection.default
        algorithm = self.file.algorithms.get(name)
        if algorithm is None:
            raise ConfigError(self.source, "algorithms", _unknown(name, self.file))
        inherited = defaults.model_dump(exclude={"algorithm"})
        return AlgorithmConfig(name=name, **(inherited | algorithm.model_dump(exclude_none=True)))

    def used_by(self, name: str) -> tuple[str, ...]:
        """The algorithms that a group with algorithm `name` may run: itself, or all that `auto` chooses from.

        The first one is that of `resolve`. If the file has it, the one of send and receive is the last.
        """
        chosen = [self.resolve(name).name]
        if name == AUTO and self.file.selection is not None:
            chosen += [
                row.algorithm for rows in self.file.selection.by_size.values() for row in rows
            ]
        known = POINT_TO_POINT in self.file.algorithms
        return tuple(dict.fromkeys((*chosen, POINT_TO_POINT) if known else chosen))

    def choose(self, name: str, collective: str, nbytes: int) -> str:
        """The algorithm that a group with algorithm `name` runs for `collective` on `nbytes` bytes a rank."""
        selection = self.file.selection
        if name == AUTO and selection is not None:
            for row in selection.by_size.get(collective, ()):
                if row.up_to_bytes is None or nbytes <= row.up_to_bytes:
                    return row.algorithm
        return self.resolve(name).name


def load_ccl(path: Path | None = None) -> CclConfig:
    """The configuration in `path`, by default the one that ships with kernbench; raises `ConfigError`."""
    source = path or default_file("ccl.yaml")
    return parse_ccl(read_text(source), str(source))


def parse_ccl(text: str, source: str) -> CclConfig:
    """The configuration in YAML `text`; errors are `ConfigError`s that call it `source`."""
    file = parse(text, source, CclFile)
    raise_first(source, list(_problems(file)))
    return CclConfig(source, file)


def _problems(file: CclFile) -> Iterator[tuple[str, str]]:
    """(key path, problem) of what names an algorithm that does not exist, and of rows that are never reached."""
    name = file.defaults.algorithm
    if AUTO in file.algorithms:
        yield (
            f"algorithms.{AUTO}",
            f"{AUTO!r} means what the section `selection` says; an algorithm needs another name",
        )
    if name == AUTO and file.selection is None:
        yield "defaults.algorithm", f"{AUTO!r} needs the section `selection`, which says what runs"
    elif name != AUTO and name not in file.algorithms:
        yield "defaults.algorithm", _unknown(name, file)
    if file.selection is not None:
        yield from _problems_of_selection(file.selection, file)


def _problems_of_selection(
    selection: AlgorithmSelection, file: CclFile
) -> Iterator[tuple[str, str]]:
    named = {"selection.default": selection.default}
    for collective, rows in selection.by_size.items():
        where = f"selection.by_size.{collective}"
        if collective not in COLLECTIVES:
            yield where, f"no collective {collective!r}{nearest(collective, COLLECTIVES)}"
        named |= {f"{where}[{index}].algorithm": row.algorithm for index, row in enumerate(rows)}
        yield from _unreachable_rows(where, rows)
    for key_path, name in named.items():
        if name == AUTO:
            yield (
                key_path,
                f"{AUTO!r} cannot choose itself; known: {', '.join(sorted(file.algorithms))}",
            )
        elif name not in file.algorithms:
            yield key_path, _unknown(name, file)


def _unreachable_rows(where: str, rows: Sequence[Choice]) -> Iterator[tuple[str, str]]:
    for index, (row, below) in enumerate(pairwise(rows)):
        if row.up_to_bytes is None:
            yield (
                f"{where}[{index}]",
                "this key is missing: up_to_bytes; only the last row is for calls of any size",
            )
        elif below.up_to_bytes is not None and below.up_to_bytes <= row.up_to_bytes:
            problem = f"is {below.up_to_bytes}, and the row before takes calls of up to {row.up_to_bytes} bytes: no call gets here"
            yield f"{where}[{index + 1}].up_to_bytes", problem


def _unknown(name: str, file: CclFile) -> str:
    return f"no algorithm {name!r}{nearest(name, [*file.algorithms, *([AUTO] if file.selection else [])])}"
