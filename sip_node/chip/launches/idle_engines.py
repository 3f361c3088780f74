"""The engines of PEs between two launches: their sums, and the few states that outlive a launch.

An idle engine has no request, token or packet. What is left is when it is free, and how much it has
done so far; whose turn it is among its slots is the concern of `tile_slots`.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from sip_node.chip.pe.pe import Pe

_SUMS = {
    "dma": ("busy_ps", "nbytes"),
    "math": ("busy_ps", "records"),
    "gemm": ("busy_ps", "tiles", "macs", "stall_dma_ps", "stall_fetch_ps", "stall_store_ps"),
    "fetch": ("records",),
    "store": ("records",),
    "scheduler": ("engine_ps",),
}
"""The sums of each engine."""
_FREE = ("math", "gemm")
"""The engines that are calendars: `free_ps` is the end of their last work."""


class EngineState(NamedTuple):
    """The state of the idle engines of one PE."""

    sums: tuple[int, ...]
    free_ps: tuple[int, ...]


def _parts(pe: Pe) -> dict[str, Any]:
    return {
        "dma": pe.dma,
        "math": pe.math,
        "gemm": pe.gemm,
        "fetch": pe.fetch_store.fetch,
        "store": pe.fetch_store.store,
        "scheduler": pe.scheduler,
    }


class IdleEngines:
    """The engines of some PEs."""

    def __init__(self, pes: Sequence[Pe]) -> None:
        parts = [_parts(pe) for pe in pes]
        self.sums = [
            [(of[name], field) for name, fields in _SUMS.items() for field in fields]
            for of in parts
        ]
        """The sums of each PE: (engine, field)."""
        self.calendars = [[of[name] for name in _FREE] for of in parts]
        """The engines of each PE that are calendars."""

    def read(self) -> list[EngineState]:
        """The state of each PE now."""
        return [
            EngineState(
                tuple([getattr(part, field) for part, field in sums]),
                tuple([part.free_ps for part in calendars]),
            )
            for sums, calendars in zip(self.sums, self.calendars, strict=True)
        ]


class EngineChanges:
    """The changes of `engines` by a launch from `begin_ps` on, between two states."""

    def __init__(
        self,
        engines: IdleEngines,
        before: Sequence[EngineState],
        after: Sequence[EngineState],
        begin_ps: int,
    ) -> None:
        # Of engines that have worked, since all others are as they were.
        self._sums: list[tuple[Any, str, int]] = []
        self._free: list[tuple[Any, int, int]] = []
        for number, (old, new) in enumerate(zip(before, after, strict=True)):
            self._sums += [
                (part, field, second - first)
                for (part, field), first, second in zip(
                    engines.sums[number], old.sums, new.sums, strict=True
                )
                if first != second
            ]
            self._free += [
                (part, max(0, first - begin_ps), second - begin_ps)
                for part, first, second in zip(
                    engines.calendars[number], old.free_ps, new.free_ps, strict=True
                )
                if first != second
            ]

    def is_alike(self, now_ps: int) -> bool:
        """Whether the engines would work on a launch that begins now as they have on that one."""
        return all(max(0, part.free_ps - now_ps) == left_ps for part, left_ps, _ in self._free)

    def repeat(self, begin_ps: int) -> None:
        """Change the engines as a launch does that begins at `begin_ps`."""
        for part, field, growth in self._sums:
            setattr(part, field, getattr(part, field) + growth)
        for part, _, end_ps in self._free:
            part.free_ps = begin_ps + end_ps
