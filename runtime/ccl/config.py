"""`ccl.yaml`: the collective algorithms, the parameters of their queues, the selection that `auto`
makes, and the queue tables of users' kernels.

The file is checked once, when it is read: types and ranges of values, names of algorithms, order of
the selection rows, and every module and function that an algorithm refers to. A wrong file is a
`ConfigError` with the file and the key path.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from runtime.ccl.references import (
    COLLECTIVES,
    PAIRWISE,
    POINT_TO_POINT,
    referenced_modules,
    unresolved_references,
)
from runtime.ccl.selection import (
    AlgorithmSelection,
    CallShape,
    Choice,
    matching_row,
    unreachable_rows,
)
from runtime.ccl.topologies import TOPOLOGIES
from runtime.core.config.config_file import default_file, from_values, parse, raise_first, read_text
from runtime.core.config.section import Section
from runtime.core.errors import ConfigError, nearest

__all__ = [
    "AUTO",
    "COLLECTIVES",
    "PAIRWISE",
    "POINT_TO_POINT",
    "AlgorithmConfig",
    "BufferKind",
    "CallShape",
    "CclConfig",
    "Choice",
    "ccl_of_values",
    "load_ccl",
    "parse_ccl",
    "parse_checked_ccl",
]

BufferKind = Literal["tcm", "hbm", "sram"]
Backpressure = Literal["sleep"]
_Count = Annotated[int, Meta(ge=1, le=1 << 30)]
_Index = Annotated[int, Meta(ge=0, le=1 << 20)]
_SlotSize = Annotated[int, Meta(ge=64, le=1 << 30, multiple_of=64)]
_Name = Annotated[str, Meta(min_length=1)]

_ALL_NEIGHBOURS = "fully_connected"
_FEW_NEIGHBOURS = TOPOLOGIES.keys() - {_ALL_NEIGHBOURS} | {"system"}
"""The topologies by registry key without a receive ring for each other rank."""

AUTO = "auto"
"""The name that stands for what the section `selection` chooses by collective and size."""


class Defaults(Section, frozen=True):
    """The parameters of every algorithm that does not override them."""

    algorithm: _Name
    buffer_kind: BufferKind
    backpressure: Backpressure
    n_slots: _Count
    slot_size: _SlotSize
    vc_chunk_size: _Count
    ipcq_credit_size_bytes: _Count
    world_size: _Count | None = None


class Algorithm(Section, frozen=True):
    """One algorithm: its module, three functions by registry key or import path, and overrides;
    null is no override.
    """

    module: _Name
    topology: _Name
    mapper: _Name
    validator: _Name
    buffer_kind: BufferKind | None = None
    backpressure: Backpressure | None = None
    n_slots: _Count | None = None
    slot_size: _SlotSize | None = None
    peer_rings_bytes: _Count | None = None
    vc_chunk_size: _Count | None = None
    ipcq_credit_size_bytes: _Count | None = None
    world_size: _Count | None = None
    root_cube: _Index | None = None
    n_elem: _Count | None = None


class QueueSection(Section, frozen=True):
    """Queues for kernels of users, on which no collective runs: two functions by registry key or
    import path, and overrides; null is no override.
    """

    mapper: _Name
    topology: _Name = "none"
    buffer_kind: BufferKind | None = None
    backpressure: Backpressure | None = None
    n_slots: _Count | None = None
    slot_size: _SlotSize | None = None
    vc_chunk_size: _Count | None = None
    ipcq_credit_size_bytes: _Count | None = None


class CclFile(Section, frozen=True, kw_only=True):
    """The whole file."""

    defaults: Defaults
    selection: AlgorithmSelection | None = None
    algorithms: Annotated[dict[_Name, Algorithm], Meta(min_length=1)]
    queues: dict[_Name, QueueSection] = msgspec.field(default_factory=dict[_Name, QueueSection])


@dataclass(frozen=True)
class AlgorithmConfig:
    """One algorithm, or one table of `queues`, with its overrides applied to the defaults. Sizes
    are bytes.

    `root_cube` None stands for the algorithm's own choice, `n_elem` None for the size of the
    tensor. `peer_rings_bytes` limits the rings of a PE that has one for every other rank; None is
    no limit. `module` and `validator` are empty for a table of `queues`.
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
    peer_rings_bytes: int | None = None

    def of_group(self, ranks: int) -> "AlgorithmConfig":
        """The parameters in a group of `ranks` ranks: fewer slots where `n_slots` for each other
        rank are more than `peer_rings_bytes`, at least one.
        """
        if self.peer_rings_bytes is None or ranks < 2:
            return self
        slots = self.peer_rings_bytes // ((ranks - 1) * self.slot_size)
        return replace(self, n_slots=max(min(self.n_slots, slots), 1))

    @property
    def key_path(self) -> str:
        """The key path of its section in the file."""
        return f"algorithms.{self.name}" if self.module else f"queues.{self.name}"

    @property
    def ring_bytes(self) -> int:
        """Bytes of one receive ring."""
        return self.n_slots * self.slot_size

    def ranks(self, sips: int) -> int:
        """The world size: that of the file, else one rank per SIP."""
        return sips if self.world_size is None else self.world_size


@dataclass(frozen=True)
class CclConfig:
    """A checked `ccl.yaml`; `source` is its name in error messages."""

    source: str
    file: CclFile
    # The parameters of an algorithm, which each call of a collective looks up.
    _resolved: dict[str, AlgorithmConfig] = field(
        default_factory=dict[str, AlgorithmConfig], init=False, repr=False, compare=False
    )

    @property
    def modules(self) -> tuple[str, ...]:
        """The modules that the file names, each once, in its order."""
        return referenced_modules(self.file.algorithms.values(), self.file.queues.values())

    def resolve(self, name: str | None = None) -> AlgorithmConfig:
        """The parameters of algorithm `name`, by default of `defaults.algorithm`; of
        `selection.default` for `auto`.

        Raises `ConfigError` with the nearest name when there is no such algorithm.
        """
        defaults, selection = self.file.defaults, self.file.selection
        name = name or defaults.algorithm
        if name == AUTO and selection is not None:
            name = selection.default
        algorithm = self.file.algorithms.get(name)
        if algorithm is None:
            raise ConfigError(self.source, "algorithms", _unknown(name, self.file))
        if name not in self._resolved:
            self._resolved[name] = _with_overrides(name, defaults, algorithm.values())
        return self._resolved[name]

    def resolve_queues(self, name: str) -> AlgorithmConfig:
        """The parameters of the queue table `name`: that of an algorithm, or one of `queues`.

        Raises `ConfigError` with the nearest name when there is no such table.
        """
        table = self.file.queues.get(name)
        if table is None and name in self.file.algorithms:
            return self.resolve(name)
        if table is None:
            problem = f"no queue table {name!r}"
            known = [*self.file.queues, *self.file.algorithms]
            raise ConfigError(self.source, "queues", problem + nearest(name, known))
        return _with_overrides(
            name, self.file.defaults, {"module": "", "validator": ""} | table.values()
        )

    def world_size(self, sips: int, algorithm: object = None) -> int:
        """The number of ranks of a run on `sips` SIPs: the override of the algorithm, else that of
        the defaults, else one rank per SIP. The first SIPs have the ranks.

        `algorithm` is the flag of that name of a bench, if it has one. A name that the file does
        not have stands for `defaults.algorithm`: the bench refuses it. Raises `ConfigError` for
        more ranks than SIPs.
        """
        known = isinstance(algorithm, str) and (
            algorithm in self.file.algorithms or (algorithm == AUTO and self.file.selection)
        )
        config = self.resolve(str(algorithm) if known else None)
        ranks = config.ranks(sips)
        if ranks > sips:
            problem = (
                f"is {ranks}, but --sips is {sips}, and a SIP runs one rank; "
                "null stands for one rank on every SIP"
            )
            raise ConfigError(self.source, self.world_size_key(config.name), problem)
        return ranks

    def world_size_key(self, algorithm: str) -> str:
        """The key path of the world size of an algorithm."""
        overridden = self.file.algorithms[algorithm].world_size is not None
        return f"algorithms.{algorithm}.world_size" if overridden else "defaults.world_size"

    def used_by(self, name: str, *, on_grid: bool = False) -> tuple[str, ...]:
        """The algorithms that a group with algorithm `name` may run: `name` itself, or every choice
        of `auto`, those of rows for a grid of SIPs only for such a group.

        The first one is that of `resolve`. The algorithms of send and receive and of all-to-all
        with parts of any sizes are the last ones, if the file has them.
        """
        chosen = [self.resolve(name).name]
        if name == AUTO and self.file.selection is not None:
            chosen += [
                row.algorithm
                for rows in self.file.selection.by_size.values()
                for row in rows
                if on_grid or not row.on_grid
            ]
        always = [each for each in (POINT_TO_POINT, PAIRWISE) if each in self.file.algorithms]
        # The first one stays the first: users' kernels have its queues.
        chosen[1:] = [each for each in chosen[1:] if each not in always] + always
        # Every rank must compute the same order, since the addresses of the receive rings follow
        # from it; a dict keeps the first occurrence of each name, a set would keep no order.
        return tuple(dict.fromkeys(chosen))

    def choose(self, name: str, collective: str, call: CallShape) -> str:
        """The algorithm that a group with algorithm `name` runs for a call of `collective`."""
        selection = self.file.selection
        if name == AUTO and selection is not None:
            row = matching_row(selection.by_size.get(collective, ()), call)
            if row is not None:
                return row.algorithm
        return self.resolve(name).name


def _with_overrides(name: str, defaults: Defaults, own: Mapping[str, Any]) -> AlgorithmConfig:
    # A null in a section is no override, so its None values must not replace the defaults.
    inherited = defaults.values()
    del inherited["algorithm"]
    overrides = {key: value for key, value in own.items() if value is not None}
    return AlgorithmConfig(name=name, **(inherited | overrides))


def load_ccl(path: Path | None = None) -> CclConfig:
    """The configuration in `path`, by default the file that ships with kernbench; raises
    `ConfigError`.
    """
    source = path or default_file("ccl.yaml")
    return parse_ccl(read_text(source), str(source))


def parse_ccl(text: str, source: str, *, directories: Sequence[str] = ()) -> CclConfig:
    """The configuration in YAML `text`; raises `ConfigError` with `source` as the name of the file.

    A module of an algorithm is searched in `directories`, such as that of the user's script, and
    then on the import path.
    """
    return _checked(parse_checked_ccl(text, source), directories)


def ccl_of_values(
    content: Mapping[str, Any], source: str, *, directories: Sequence[str] = ()
) -> CclConfig:
    """The configuration with these keys and values, as `parse_ccl` returns that of a text."""
    return _checked(CclConfig(source, from_values(content, source, CclFile)), directories)


def _checked(config: CclConfig, directories: Sequence[str]) -> CclConfig:
    problems = [
        *_problems(config.file),
        *unresolved_references(config.file.algorithms, config.file.queues, directories),
    ]
    raise_first(config.source, problems)
    return config


def parse_checked_ccl(text: str, source: str) -> CclConfig:
    """The configuration in YAML `text`, without a check of what its algorithms refer to."""
    return CclConfig(source, parse(text, source, CclFile))


def _problems(file: CclFile) -> Iterator[tuple[str, str]]:
    """(key path, problem) of names of algorithms that do not exist, and of selection rows that no
    call reaches.
    """
    name = file.defaults.algorithm
    if AUTO in file.algorithms:
        yield (
            f"algorithms.{AUTO}",
            f"{AUTO!r} stands for the section `selection`; an algorithm needs another name",
        )
    if name == AUTO and file.selection is None:
        yield "defaults.algorithm", f"{AUTO!r} needs the section `selection`, which is missing"
    elif name != AUTO and name not in file.algorithms:
        yield "defaults.algorithm", _unknown(name, file)
    for table in file.queues:
        if table == AUTO or table in file.algorithms:
            yield (
                f"queues.{table}",
                f"{table!r} is an algorithm, whose queues have its name; a table needs another one",
            )
    for name, algorithm in file.algorithms.items():
        if algorithm.peer_rings_bytes is not None and algorithm.topology in _FEW_NEIGHBOURS:
            problem = (
                f"topology {algorithm.topology!r} has no receive ring for each other rank, as "
                f"{_ALL_NEIGHBOURS!r} has; set n_slots and slot_size instead"
            )
            yield f"algorithms.{name}.peer_rings_bytes", problem
    if file.selection is not None:
        yield from _selection_problems(file.selection, file)


def _selection_problems(selection: AlgorithmSelection, file: CclFile) -> Iterator[tuple[str, str]]:
    # All references are collected first, so that each wrong name is reported with its own key path.
    references = {"selection.default": selection.default}
    for collective, rows in selection.by_size.items():
        section = f"selection.by_size.{collective}"
        if collective not in COLLECTIVES:
            yield section, f"no collective {collective!r}{nearest(collective, COLLECTIVES)}"
        for index, row in enumerate(rows):
            references[f"{section}[{index}].algorithm"] = row.algorithm
        yield from unreachable_rows(section, rows)
    for key_path, name in references.items():
        if name == AUTO:
            known = ", ".join(sorted(file.algorithms))
            yield key_path, f"{AUTO!r} cannot choose itself; known: {known}"
        elif name not in file.algorithms:
            yield key_path, _unknown(name, file)


def _unknown(name: str, file: CclFile) -> str:
    # The algorithm of send and receive has no collective: it is not a choice.
    known = [each for each in file.algorithms if each != POINT_TO_POINT]
    known += [AUTO] if file.selection else []
    return f"no algorithm {name!r}{nearest(name, known)}"
