"""`ccl.yaml`: which collective algorithms exist, and the parameters of their queues."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from runtime.config_file import Section, default_file, parse, raise_first, read_text
from runtime.errors import ConfigError, nearest

BufferKind = Literal["tcm", "hbm", "sram"]
Backpressure = Literal["sleep"]
_Count = Annotated[int, Field(ge=1, le=1 << 30)]
_Index = Annotated[int, Field(ge=0, le=1 << 20)]
_SlotSize = Annotated[int, Field(ge=64, le=1 << 30, multiple_of=64)]
_Name = Annotated[str, Field(min_length=1)]


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


class CclFile(Section):
    """The whole file."""

    defaults: Defaults
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

        Raises `ConfigError` with the nearest name when there is no such algorithm.
        """
        defaults = self.file.defaults
        name = name or defaults.algorithm
        algorithm = self.file.algorithms.get(name)
        if algorithm is None:
            raise ConfigError(self.source, "algorithms", _unknown(name, self.file))
        inherited = defaults.model_dump(exclude={"algorithm"})
        return AlgorithmConfig(name=name, **(inherited | algorithm.model_dump(exclude_none=True)))


def load_ccl(path: Path | None = None) -> CclConfig:
    """The configuration in `path`, by default the one that ships with kernbench; raises `ConfigError`."""
    source = path or default_file("ccl.yaml")
    return parse_ccl(read_text(source), str(source))


def parse_ccl(text: str, source: str) -> CclConfig:
    """The configuration in YAML `text`; errors are `ConfigError`s that call it `source`."""
    file = parse(text, source, CclFile)
    if file.defaults.algorithm not in file.algorithms:
        raise_first(source, [("defaults.algorithm", _unknown(file.defaults.algorithm, file))])
    return CclConfig(source, file)


def _unknown(name: str, file: CclFile) -> str:
    return f"no algorithm {name!r}{nearest(name, file.algorithms)}"
