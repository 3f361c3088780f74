"""What topologies, mappers and validators return, checked: `ccl.yaml` may name functions of a
user's own.

Whatever is wrong with a result is a `ConfigError` that names the key, what was returned, and what
has to be.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import cast

from runtime.ccl.mappers import CubePe, Mapping
from runtime.ccl.topologies import Neighbours
from runtime.ccl.validators import Validator
from runtime.core.errors import ConfigError
from runtime.model.placement import ShardSpec
from runtime.model.topology import Topology


class CheckedFunctions:
    """Calls the parts of the algorithm `name` of the file `source`."""

    def __init__(self, source: str, name: str) -> None:
        self._source, self._name = source, name

    def neighbours(
        self, topology: Callable[[int, int, int], Neighbours], ranks: int, grid: tuple[int, int]
    ) -> list[Neighbours]:
        """What a topology gives for every rank of a grid of (columns, rows)."""
        found = [self._called("topology", topology, rank, *grid) for rank in range(ranks)]
        for rank, ways in enumerate(found):
            if not _are_neighbours(ways, rank, ranks):
                call = f"{_name(topology)}({rank}, {grid[0]}, {grid[1]})"
                rule = f"it has to be a dict of directions and other ranks of 0 to {ranks - 1}"
                raise self._error("topology", f"{call} returned {ways!r}; {rule}")
        return cast("list[Neighbours]", found)

    def mapping(
        self, mapper: Callable[[Topology, int], Mapping], topology: Topology, root_cube: int
    ) -> Mapping:
        """What a mapper gives."""
        mapping = self._called("mapper", mapper, topology, root_cube)
        if not isinstance(mapping, Mapping):
            raise self._error(
                "mapper",
                f"{_name(mapper)} returned {mapping!r}; it has to be a runtime.ccl.mappers:Mapping",
            )
        for place, rule in _misplaced(mapping, topology):
            raise self._error(
                "mapper", f"{_name(mapper)} returned a Mapping with (cube, pe) {place}, {rule}"
            )
        return mapping

    def validate(
        self, validator: Validator, shards: Sequence[ShardSpec], participants: Sequence[CubePe]
    ) -> None:
        """Let a validator refuse a placement with its `ValueError`."""
        answer = self._called("validator", validator, shards, participants)
        if answer is not None:
            rule = "it has to raise a ValueError that says what is wrong with a placement, and return None"
            raise self._error("validator", f"{_name(validator)} returned {answer!r}; {rule}")

    def _called(self, part: str, function: Callable[..., object], *arguments: object) -> object:
        if not callable(function):
            raise self._error(part, f"{function!r} is no function")
        return function(*arguments)

    def _error(self, part: str, problem: str) -> ConfigError:
        return ConfigError(self._source, f"algorithms.{self._name}.{part}", problem)


def _are_neighbours(ways: object, rank: int, ranks: int) -> bool:
    if not isinstance(ways, dict):
        return False
    named = cast("dict[object, object]", ways)
    return all(isinstance(way, str) for way in named) and all(
        type(peer) is int and 0 <= peer < ranks and peer != rank for peer in named.values()
    )


def _misplaced(mapping: Mapping, topology: Topology) -> Iterator[tuple[CubePe, str]]:
    """The PEs of a mapping that do not exist or do not take part, and why they should."""
    last = f"which no SIP has: the last one is {(topology.cubes - 1, topology.pes_per_cube - 1)}"
    for cube, pe in mapping.participants:
        if not (0 <= cube < topology.cubes and 0 <= pe < topology.pes_per_cube):
            yield (cube, pe), last
    taking_part = set(mapping.participants)
    joined = {
        *mapping.local,
        *mapping.exchange,
        *(peer for ways in mapping.local.values() for peer in ways.values()),
    }
    for place in sorted(joined - taking_part):
        yield place, "which has neighbours and is not among its participants"


def _name(function: object) -> str:
    return getattr(function, "__qualname__", repr(function))
