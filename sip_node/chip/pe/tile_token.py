"""One step of a matrix product on its way through the engines of a PE."""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from runtime.core.trace import Operand
from runtime.language.gemm import Gemm
from runtime.language.value import Array
from runtime.model.tiles import Tile
from sip_node.chip.pe.operand_tiles import Source, TileData
from sip_node.chip.pe.tile_buffers import RegisterFile


class TileStage(Protocol):
    """An engine that tokens pass."""

    def accept(self, token: "TileToken") -> None:
        """Take a token; when its work is done, `token.advance()`."""
        ...


class OutputTile(Struct):
    """One tile of the result. The steps of its depth add to the same accumulator, `None` until it has one.

    `start` is what the sum starts from, None for zeros; `bias` is fetched with the last step, into the registers of `bias_row`.
    `data` is the sum, and in the end the result. That is stored at `target`, a part of a value in TCM; or, where this is None,
    in the scheduler's buffer number `buffer`, from where it goes to `memory`.
    """

    shape: tuple[int, int]
    start: TileData | None
    bias: TileData | None
    target: Operand | None
    memory: list[Operand]
    accumulator: int | None = None
    address: int = 0
    bias_row: int = 0
    buffer: int = 0
    data: Array | None = None

    def take_accumulator(self, registers: RegisterFile) -> None:
        """Occupy an accumulator that is free."""
        self.accumulator = registers.accumulators.take()
        self.address = registers.accumulator(self.accumulator)

    def registers(self, dtype: str) -> Operand:
        """The accumulator as an operand."""
        return Operand(self.address, self.shape, dtype)


class TileToken(Struct):
    """A step. It carries its route and moves itself on: whoever has done its part calls `advance`.

    `operands` are the tiles of a and b once they are in TCM, `buffer` is the scheduler's buffer for them, `registers` the set
    that they are fetched to.

    The times tell the GEMM engine what it has waited for: when the product was submitted, when the operands were in TCM, when
    fetch port and a register set were free for this step (`open_ps`), when it had its turn there but for an accumulator to
    fetch into, when its fetch began and when it ended.
    """

    gemm: Gemm
    tile: Tile
    sources: tuple[Source, Source]
    output: OutputTile
    route: tuple[TileStage, ...]
    submitted_ps: int
    buffer: int
    passed: int = 0
    operands: Sequence[TileData] = ()
    registers: int = 0
    ready_ps: int = 0
    open_ps: int = 0
    turn_ps: int = 0
    fetch_ps: int = 0
    fetched_ps: int = 0

    def advance(self) -> None:
        """Go to the next stage of the route, if there is one."""
        if self.passed < len(self.route):
            stage = self.route[self.passed]
            self.passed += 1
            stage.accept(self)
