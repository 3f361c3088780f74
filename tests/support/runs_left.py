"""All that a run leaves behind, to compare two of them."""

from typing import Any

import msgspec

from tests.support.world import Simulation


def left(world: Simulation | Exception) -> list[Any]:
    """The parts of what a run leaves behind."""
    if isinstance(world, Exception):
        return [type(world), str(world), getattr(world, "__notes__", [])]
    returned = [[each.tobytes() for each in of_rank] for of_rank in world.returned.values()]
    return [
        world.done.events,
        # Bits of numbers: NaN is not equal to itself, and 0.0 is equal to -0.0.
        msgspec.msgpack.encode(world.records),
        world.done.sips,
        world.rows,
        world.texts,
        world.contents,
        world.prints,
        returned,
    ]
