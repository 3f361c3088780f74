"""The shards of tensors that lie alike, and what follows from them.

Programs allocate many tensors of few sizes. Tensors of a rank with equal shards share one layout,
so the parts of their shards in a window, and the elements of an operator that each PE computes, are
derived once for all of them. Addresses are no part of it.
"""

from collections.abc import Callable, Hashable
from typing import TypeVar, cast

from runtime.model.allocation import ALIGN_BYTES
from runtime.model.placement import ShardSpec

_T = TypeVar("_T")
_MOST_KEPT = 256
"""Results that a layout keeps; a program with windows at ever new offsets makes any number."""


class ShardLayout:
    """The shards of tensors of `nbytes` bytes, of which replicas count once. Each begins at a
    multiple of `align` bytes of its slice.
    """

    def __init__(self, specs: tuple[ShardSpec, ...], nbytes: int, align: int = ALIGN_BYTES) -> None:
        self.specs, self.nbytes, self.align = specs, nbytes, align
        # Bytes in all slices: every replica counts.
        self.stored_bytes = sum(spec.nbytes for spec in specs)
        self._derived: dict[Hashable, object] = {}

    def derived(self, key: Hashable, derive: Callable[[], _T]) -> _T:
        """The result of `derive()`, which is kept for the next calls with an equal key: the kind of
        the result, and all on which it depends beside the layout.
        """
        kept = self._derived
        if key not in kept:
            result = derive()
            if len(kept) >= _MOST_KEPT:
                # The oldest one.
                del kept[next(iter(kept))]
            kept[key] = result
        return cast("_T", kept[key])
