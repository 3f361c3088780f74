"""One step of a matrix product on its route through the engines of a PE."""

from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from runtime.core.compiled.choice import IS_COMPILED
from runtime.core.trace import Operand
from runtime.language.gemm import Gemm
from runtime.language.value import Array
from runtime.model.tiles import Tile, TileSize
from sip_node.chip.pe.operand_tiles import NOT_LOADED, Source, TileData
from sip_node.chip.pe.tile_buffers import RegisterFile


class TileStage(Protocol):
    """An engine that tokens pass."""

    def accept(self, token: "TileToken") -> None:
        """Take a token; call `token.advance()` when the work on it is done."""
        ...


class ReferenceOutputTile(Struct):
    """One tile of the result. The steps of its depth add to the same accumulator.

    `accumulator` is None until the tile has one. `start` is the initial value of the sum, None for
    zeros; `bias` is fetched with the last step, into row `bias_row` of the registers. `data` is the
    sum, and in the end the result. It is stored to `target`, a part of a value in TCM. Where that
    is None it is stored to the scheduler's result buffer `buffer`, and written to `memory`.
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
        """Reserve a free accumulator."""
        self.accumulator = registers.accumulators.take()
        self.address = registers.accumulator(self.accumulator)

    def registers(self, dtype: str) -> Operand:
        """The accumulator as an operand."""
        return Operand(self.address, self.shape, dtype)


class ReferenceStepShape(Struct):
    """What the steps of a product have in common that have one size and are, or are not, the last
    ones of an output tile.

    `step_ps` is the time that each takes in the GEMM engine. The accumulator has `output_bytes`, of
    elements of type `accumulator`. `inputs` is what a step reads, by its register set and the
    address of its accumulator (-1 for a sum that begins with it).
    """

    size: TileSize
    step_ps: int
    macs: int
    accumulator: str
    output_bytes: int
    inputs: dict[tuple[int, int], tuple[Operand, ...]]


class ReferenceTileToken(Struct):
    """A step. It carries its route: a stage that has done its work calls `advance`.

    `a` and `b` are its operands once they are in TCM, `loading` is the number of those that are
    not. `buffer` is the index of the scheduler's buffers for them, `registers` that of the
    register set that they are fetched to.

    The times are for the stalls of the GEMM engine (`stall_before` draws them): the submission of
    the product, operands in TCM, fetch port and register set free for this step, its turn there
    but for an accumulator, begin of its fetch, end of its fetch. It came to its present stage at
    `arrived_ps`.
    """

    gemm: Gemm
    tile: Tile
    shape: "StepShape"
    sources: tuple[Source, Source]
    output: "OutputTile"
    route: tuple[TileStage, ...]
    submitted_ps: int
    buffer: int
    arrived_ps: int = 0
    passed: int = 0
    a: TileData = NOT_LOADED
    b: TileData = NOT_LOADED
    loading: int = 2
    registers: int = 0
    ready_ps: int = 0
    open_ps: int = 0
    turn_ps: int = 0
    fetch_ps: int = 0
    fetched_ps: int = 0

    def advance(self) -> None:
        """Go to the next stage of the route, if there is one."""
        passed = self.passed
        if passed < len(self.route):
            self.passed = passed + 1
            self.route[passed].accept(self)


if TYPE_CHECKING or not IS_COMPILED:
    TileToken = ReferenceTileToken
    OutputTile = ReferenceOutputTile
    StepShape = ReferenceStepShape
else:
    from sip_node.compiled.tile_token import OutputTile, StepShape
    from sip_node.compiled.tile_token import Token as TileToken
