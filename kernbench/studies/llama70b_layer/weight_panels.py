"""The panels of a PE's weight, loaded in the order of their use and ahead of it."""

from collections.abc import Iterator, Sequence

from kernbench import tl
from kernbench.studies.llama70b_layer.projection_shape import Projection
from kernbench.studies.llama70b_layer.shape import ITEM_BYTES

EARLY = 3
"""Panels that are loaded before the operand has arrived: more would delay the loads of operands
from the same memory.
"""
BUFFERS = 16
"""Most panels in TCM: in use, queued at the GEMM engine, or on their way."""
PANEL_ROWS = 1024
"""Most rows of a panel; half as many for a product of one token, which is as short as its loads."""
SCRATCH_BYTES = 800 << 10
"""Of TCM, for operands, sums and panels: the rest of 1 MiB is for the exchange of sums."""
DECODE_ROWS, DECODE_PANELS = 256, 16
"""A product of one token has shorter panels, but not below 256 rows, if there are fewer panels
than these: the last one is multiplied when nothing is loaded any more.
"""


class WeightPanels:
    """A ring of `BUFFERS` panels between the memory and the GEMM engine."""

    def __init__(self, weight: tl.Pointer, shape: Projection) -> None:
        self._shape, self._rows = shape, panel_rows(shape, tl.gemm_tile().k)
        pe = tl.program_id(1) * shape.pes + tl.program_id(0)
        self._start = weight + pe * shape.k * shape.n
        self._panels = list(self._in_order())
        self._loads = list[tl.PendingValue]()
        self._products = list[tl.PendingResult]()
        most = BUFFERS if shape.block > 1 else EARLY + 1
        free = SCRATCH_BYTES - shape.operand_bytes - shape.sums_bytes
        self._buffers = min(most, max(EARLY + 1, free // (self._rows * shape.width * ITEM_BYTES)))
        for _ in range(min(EARLY, len(self._panels))):
            self._load()

    def multiply(self, x: tl.Value, panels: Sequence[tl.Value]) -> None:
        """Queue x @ the next chunk of the weight into its `panels`, (tokens, width) each.

        Returns when the panels of the chunk are in TCM.
        """
        for row in range(0, self._shape.k, self._rows):
            for target in panels:
                # Half of the buffers are ahead of the products, half behind them: these may wait at
                # the engine while the kernel exchanges sums.
                ahead = len(self._products) + self._buffers // 2
                while len(self._loads) < min(ahead, len(self._panels)):
                    self._load()
                panel = self._loads[len(self._products)].wait()
                operand = x[:, row : row + self._rows]
                acc = target if row else None
                self._products.append(tl.composite("gemm", operand, panel, target, acc=acc))

    def _in_order(self) -> Iterator[int]:
        """The first element of every panel, for each block of tokens.

        Successive panels have different columns: a product waits for the sum to which it is added.
        """
        shape = self._shape
        for _ in range(0, shape.tokens, shape.block):
            for column in shape.chunks:
                for row in range(0, shape.k, self._rows):
                    for panel in shape.panels:
                        yield (column + panel * shape.width) * shape.k + row * shape.width

    def _load(self) -> None:
        number, out = len(self._loads), None
        if number >= self._buffers:
            self._products[number - self._buffers].wait()
            out = self._loads[number - self._buffers].wait()
        start, block = self._start + self._panels[number], (self._rows, self._shape.width)
        self._loads.append(tl.load_async(start, block, out=out))


def panel_rows(shape: Projection, tile: int) -> int:
    """The rows of a panel: all are equal, and whole tiles of `tile` rows if possible."""
    whole = [each for each in range(tile, shape.k + 1, tile) if not shape.k % each] or [shape.k]
    most = PANEL_ROWS if shape.block > 1 else PANEL_ROWS // 2
    fitting = [each for each in whole if each <= most] or whole[:1]
    if shape.block > 1:
        return fitting[-1]
    across = max(1, shape.n // shape.width)
    enough = [each for each in fitting if shape.k // each * across >= DECODE_PANELS]
    least = [each for each in fitting if each >= DECODE_ROWS] or fitting[-1:]
    return max(enough[-1], least[0]) if enough else least[0]
