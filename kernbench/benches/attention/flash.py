"""Flash attention on one PE: scores stay in TCM, and all engines of the PE work at the same time.

For a block of queries the keys pass block by block, and the state (m, l, o) of online softmax stays
in TCM (T. Dao et al., "FlashAttention", NeurIPS 2022). The loop is a software pipeline over the
blocks of all items. While the vector engine computes the exponentials of step n,

- the GEMM engine multiplies those of step n - 1 with the values, and with ones, which gives the
  sums of rows; then the queries with the keys of step n + 1;
- the DMA loads the keys of step n + 2 and the values of step n + 1.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kernbench import tl
from kernbench.benches.attention.online_softmax import MASKED, SoftmaxState


class BlockShape(NamedTuple):
    """Queries (`rows`) and keys (at most `width`) of a block of scores; `depth` columns of q, k and
    v.
    """

    rows: int
    width: int
    depth: int

    @property
    def scale(self) -> float:
        """The factor of a score, 1 / sqrt(depth)."""
        return self.depth**-0.5


@dataclass(frozen=True)
class FlashItem:
    """A block of queries and the `keys` keys and values to which it attends, all row-major without
    gaps.

    With `is_causal` the last query belongs to the last key, and keys behind a query are masked.
    With `pages` keys and values lie in pages of `page_keys` rows, which divide the width of a block
    and the keys: k and v point to page 0, and `pages` are the numbers of the item's pages.
    """

    q: tl.Pointer
    k: tl.Pointer
    v: tl.Pointer
    keys: int
    is_causal: bool = False
    pages: tuple[int, ...] = ()
    page_keys: int = 0


def flash(items: Sequence[FlashItem], shape: BlockShape) -> Iterator[SoftmaxState]:
    """The state of each item in turn, which is valid until the next one is taken.

    The first block of keys must have `shape.width` rows in memory, also for an item with fewer
    keys. A causal item has a multiple of `shape.rows` keys, which divides `shape.width`.
    """
    steps = list(_steps(items, shape))
    if not steps:
        return
    loop = _FlashLoop(steps, shape)
    pending = loop.start_scores(0)
    finished: SoftmaxState | None = None
    for number, step in enumerate(steps):
        tl.wait(pending)
        loop.load_keys(number + 2)
        if number + 1 < len(steps):
            pending = loop.start_scores(number + 1)
        loop.exponentiate(number)
        # The last products of the item before have ended beside these exponentials.
        if finished is not None:
            yield finished
        loop.load_values(number + 1)
        loop.start_values(number)
        finished = loop.states[step.item % 2] if step.is_last else None
    if finished is not None:
        yield finished


class _Step(NamedTuple):
    """One block of scores: `keys` keys from `first` on, of which the last ones may be masked."""

    flash: FlashItem
    item: int
    first: int
    keys: int

    @property
    def is_first(self) -> bool:
        return self.first == 0

    @property
    def is_last(self) -> bool:
        return self.first + self.keys == self.flash.keys

    @property
    def is_masked(self) -> bool:
        return self.flash.is_causal and self.is_last


def _steps(items: Sequence[FlashItem], shape: BlockShape) -> Iterator[_Step]:
    for number, item in enumerate(items):
        for first in range(0, item.keys, shape.width):
            yield _Step(item, number, first, min(shape.width, item.keys - first))


class _FlashLoop:
    """The buffers of the loop, two of each kind: for even and odd steps, or items.

    A command that writes over a buffer waits for operations in flight that still use it.
    """

    def __init__(self, steps: Sequence[_Step], shape: BlockShape) -> None:
        rows, width, depth = self._shape = shape
        self._steps = steps
        self._loads: dict[tuple[str, int], tl.PendingValue] = {}
        self._loaded: dict[tuple[str, int], tl.Value] = {}
        self._views: dict[tuple[int, int], tl.Value] = {}
        self.load_keys(0)
        self.load_keys(1)
        self.load_values(0)
        # The engines make these while the first keys are on their way.
        dtype, pair = steps[0].flash.v.dtype, range(2)
        self._scores = [tl.zeros(rows * width, tl.float32) for _ in pair]
        self._powers = [tl.zeros(rows * width, dtype) for _ in pair]
        self._ones = tl.full((width, 1), 1, dtype)
        self._decay = tl.zeros((rows, 1), tl.float32)
        columns = (1, 1, depth)
        self.states = [
            SoftmaxState(*(tl.zeros((rows, each), tl.float32) for each in columns)) for _ in pair
        ]
        self._masks = {
            keys: _visible(rows, keys) for keys in sorted({s.keys for s in steps if s.is_masked})
        }

    def load_keys(self, number: int) -> None:
        """Load the keys of a step, and the queries of its item; nothing behind the last step."""
        if number >= len(self._steps):
            return
        step, (rows, _, depth) = self._steps[number], self._shape
        if step.is_first:
            self._load("q", step.item, step.flash.q, (rows, depth))
        self._load_block("k", number, step.flash.k)

    def load_values(self, number: int) -> None:
        """Load the values of a step; nothing behind the last step."""
        if number < len(self._steps):
            self._load_block("v", number, self._steps[number].flash.v)

    def start_scores(self, number: int) -> tl.PendingResult:
        """Start the product of queries and keys of a step."""
        q, k = self._ready("q", self._steps[number].item), self._ready("k", number)
        keys = self._first_rows(k, self._steps[number].keys)
        return tl.composite("gemm", q, keys.mT, self._block(self._scores, number))

    def exponentiate(self, number: int) -> None:
        """The exponentials of a step, in one stream through the vector engine."""
        step, scale = self._steps[number], self._shape.scale
        scores, powers = self._block(self._scores, number), self._block(self._powers, number)
        m = self.states[step.item % 2].m
        # The scale is a factor of scores and of their maximum: it costs no operation of its own.
        if step.is_first:

            def chain(scores: tl.Value) -> tuple[tl.Value, ...]:
                seen = (
                    tl.where(self._masks[step.keys], scores, MASKED) if step.is_masked else scores
                )
                highest = tl.max(seen, axis=1, keep_dims=True) * scale
                return tl.exp(tl.fma(seen, scale, -highest)).to(powers.dtype), highest

            tl.fused(chain, scores, out=(powers, m))
            return

        def later(scores: tl.Value, m: tl.Value) -> tuple[tl.Value, ...]:
            seen = tl.where(self._masks[step.keys], scores, MASKED) if step.is_masked else scores
            highest = tl.maximum(m, tl.max(seen, axis=1, keep_dims=True) * scale)
            exps = tl.exp(tl.fma(seen, scale, -highest)).to(powers.dtype)
            return exps, highest, tl.exp(m - highest)

        tl.fused(later, scores, m, out=(powers, m, self._decay))

    def start_values(self, number: int) -> None:
        """Start the products of the exponentials of a step with ones and with the values."""
        step = self._steps[number]
        _, sums, o = self.states[step.item % 2]
        powers, v = self._block(self._powers, number), self._ready("v", number)
        if not step.is_first:
            tl.fused(_decayed, o, sums, self._decay, out=(o, sums))
        ones, v = self._first_rows(self._ones, step.keys), self._first_rows(v, step.keys)
        tl.composite("gemm", powers, v, o, acc=None if step.is_first else o)
        tl.composite("gemm", powers, ones, sums, acc=None if step.is_first else sums)

    def _block(self, buffers: Sequence[tl.Value], number: int) -> tl.Value:
        """The part of a buffer which a step uses, as a matrix without gaps."""
        rows, keys, buffer = self._shape.rows, self._steps[number].keys, buffers[number % 2]
        key = buffer.address, keys
        if key not in self._views:
            self._views[key] = buffer[: rows * keys].reshape(rows, keys)
        return self._views[key]

    def _first_rows(self, buffer: tl.Value, count: int) -> tl.Value:
        """The first rows of a value; views take no time, but are made once."""
        key = buffer.address, count
        if key not in self._views:
            self._views[key] = buffer[:count]
        return self._views[key]

    def _load_block(self, kind: str, number: int, start: tl.Pointer) -> None:
        step, depth = self._steps[number], self._shape.depth
        # A buffer has its full size from its first load on.
        is_new = (kind, number % 2) not in self._loaded
        keys = self._shape.width if is_new else step.keys
        if not step.flash.pages:
            self._load(kind, number, start + step.first * depth, (keys, depth))
            return
        page_keys, last = step.flash.page_keys, len(step.flash.pages) - 1
        first, count = step.first // page_keys, keys // page_keys
        # A new buffer that has more pages than the item is filled with its last page.
        rows = [step.flash.pages[min(page, last)] for page in range(first, first + count)]
        out = self._buffer(kind, number, keys)
        pages = None if out is None else out.reshape(count, page_keys, depth)
        self._loads[kind, number % 2] = tl.gather_async(start, rows, (page_keys, depth), out=pages)

    def _load(self, kind: str, number: int, pointer: tl.Pointer, shape: tuple[int, int]) -> None:
        out = self._buffer(kind, number, shape[0])
        self._loads[kind, number % 2] = tl.load_async(pointer, shape, out=out)

    def _buffer(self, kind: str, number: int, rows: int) -> tl.Value | None:
        """The first rows of a buffer, None before its first load."""
        buffer = self._loaded.get((kind, number % 2))
        return None if buffer is None else self._first_rows(buffer, rows)

    def _ready(self, kind: str, number: int) -> tl.Value:
        """The content of a buffer, after the wait for its load."""
        key = kind, number % 2
        pending = self._loads.pop(key, None)
        if pending is not None:
            value = pending.wait()
            # Gathered pages have an axis more.
            flat = value if len(value.shape) == 2 else value.reshape(-1, self._shape.depth)
            self._loaded.setdefault(key, flat)
        return self._loaded[key]


def _decayed(o: tl.Value, sums: tl.Value, decay: tl.Value) -> tuple[tl.Value, tl.Value]:
    return o * decay, sums * decay


def _visible(rows: int, keys: int) -> tl.Value:
    """Which of the last `keys` keys each of the last `rows` queries sees."""
    query = tl.arange(keys - rows, keys)[:, None]
    return query >= tl.arange(0, keys)[None, :]
