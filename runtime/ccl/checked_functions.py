"""Calls the topology, mapper and validator of an algorithm and checks what they return. The tables
of `queues` have the first two.

`ccl.yaml` may name functions of a user. A wrong result is a `ConfigError` with the key path, the
result and the rule.
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
    """The functions that the section `key_path` of the file `source` names."""

    def __init__(self, source: str, key_path: str) -> None:
        self._source, self._key_path = source, key_path

    def neighbours(
        self, topology: Callable[[int, int, int], Neighbours], ranks: int, grid: tuple[int, int]
    ) -> list[Neighbours]:
        """The neighbours of every rank of a grid of (columns, rows)."""
        of_ranks = [self._called("topology", topology, rank, *grid) for rank in range(ranks)]
        for rank, neighbours in enumerate(of_ranks):
            if not _are_neighbours(neighbours, rank, ranks):
                call = f"{_name(topology)}({rank}, {grid[0]}, {grid[1]})"
                rule = f"it has to be a dict of directions and other ranks of 0 to {ranks - 1}"
                raise self._error("topology", f"{call} returned {neighbours!r}; {rule}")
        return cast("list[Neighbours]", of_ranks)

    def mapping(
        self, mapper: Callable[[Topology, int], Mapping], topology: Topology, root_cube: int
    ) -> Mapping:
        """The participants that a mapper selects."""
        mapping = self._called("mapper", mapper, topology, root_cube)
        if not isinstance(mapping, Mapping):
            rule = "it has to be a runtime.ccl.mappers:Mapping"
            raise self._error("mapper", f"{_name(mapper)} returned {mapping!r}; {rule}")
        for pe, problem in _invalid_pes(mapping, topology):
            call = f"{_name(mapper)} returned a Mapping with (cube, pe) {pe}"
            raise self._error("mapper", f"{call}, {problem}")
        return mapping

    def validate(
        self, validator: Validator, shards: Sequence[ShardSpec], participants: Sequence[CubePe]
    ) -> None:
        """Call a validator, which refuses a placement with a `ValueError`."""
        result = self._called("validator", validator, shards, participants)
        if result is not None:
            rule = "it has to return None, or raise a ValueError with the problem of the placement"
            raise self._error("validator", f"{_name(validator)} returned {result!r}; {rule}")

    def _called(self, key: str, function: Callable[..., object], *arguments: object) -> object:
        if not callable(function):
            raise self._error(key, f"{function!r} is not a function")
        return function(*arguments)

    def _error(self, key: str, problem: str) -> ConfigError:
        return ConfigError(self._source, f"{self._key_path}.{key}", problem)


def _are_neighbours(neighbours: object, rank: int, ranks: int) -> bool:
    if not isinstance(neighbours, dict):
        return False
    by_direction = cast("dict[object, object]", neighbours)
    # `type` and not `isinstance`: True would pass as rank 1.
    return all(isinstance(direction, str) for direction in by_direction) and all(
        type(peer) is int and 0 <= peer < ranks and peer != rank for peer in by_direction.values()
    )


def _invalid_pes(mapping: Mapping, topology: Topology) -> Iterator[tuple[CubePe, str]]:
    """((cube, pe), problem) of the PEs of a mapping that do not exist, or have neighbours without
    being participants.
    """
    last = (topology.cubes - 1, topology.pes_per_cube - 1)
    for cube, pe in mapping.participants:
        if not (0 <= cube < topology.cubes and 0 <= pe < topology.pes_per_cube):
            yield (cube, pe), f"which no SIP has: the last one is {last}"
    # A neighbour that does not take part would have no queues to receive with.
    connected = {
        *mapping.local,
        *mapping.exchange,
        *(peer for peers in mapping.local.values() for peer in peers.values()),
    }
    for pe in sorted(connected - set(mapping.participants)):
        yield pe, "which has neighbours and is not among its participants"


def _name(function: object) -> str:
    return getattr(function, "__qualname__", repr(function))
