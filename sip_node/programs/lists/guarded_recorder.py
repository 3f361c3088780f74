"""Records a kernel that computes with addresses and decides by its ids, as Triton kernels do."""

from collections.abc import Sequence
from typing import Any, NoReturn

from runtime.core.dtypes import DType
from runtime.core.program_grid import MOST_AXES
from runtime.language.chain import VectorRegisters
from runtime.language.program_ids import ProgramIds
from runtime.language.rows import RowGather
from runtime.language.value import Pointer, Shape, Value
from runtime.model.tiles import TileSize
from sip_node.programs.kernel_memory import KernelScratch
from sip_node.programs.lists.commands import ListedEnded, ListedGatherStart, ListedPlaced
from sip_node.programs.lists.guarded_integers import GuardedInteger, OpenVariables
from sip_node.programs.lists.not_listed import NotListed
from sip_node.programs.lists.places import PointerPlace
from sip_node.programs.lists.recorder import BasedPointer, CommandRecorder, RecordedOperation


class GuardedRecorder(CommandRecorder):
    """A `CommandRecorder` whose ids and addresses are `variables`: the list is one for all programs
    that keep their guards. The kernel places its values in scratch itself.
    """

    def __init__(
        self,
        scratch: KernelScratch,
        tile: TileSize,
        registers: VectorRegisters,
        ids: ProgramIds,
        most: int,
        variables: OpenVariables,
    ) -> None:
        super().__init__(scratch, tile, registers, ids, most, closed=())
        self._variables = variables

    @property
    def free_scratch_bytes(self) -> int:
        """See `KernelContext`."""
        return self.scratch_memory.free_bytes

    def program_id(self, axis: int) -> Any:
        """See `KernelContext`."""
        own = self.ids.program_id(axis)
        return self._variables.program_id(axis) if self.ids.has(axis) else own

    def address_of(self, pointer: Pointer) -> GuardedInteger:
        """See `KernelContext`."""
        assert isinstance(pointer, BasedPointer), "a pointer among the arguments"
        return self._variables.address(pointer.base, pointer.nbytes.number)

    def pointer_place(self, pointer: Pointer) -> PointerPlace:
        """The place of an address that follows from that of one argument."""
        address: object = pointer.address
        if isinstance(address, GuardedInteger):
            ids = tuple([each for each in address.factors.items() if each[0] < MOST_AXES])
            bases = [each for each in address.factors.items() if each[0] >= MOST_AXES]
            if len(bases) == 1 and bases[0][1] == 1:
                return PointerPlace(bases[0][0] - MOST_AXES, address.number, ids, pointer.dtype)
        raise NotListed("a pointer that follows from no argument")

    def run_again(self, effect: str) -> NoReturn:
        """See `KernelContext`."""
        raise NotListed(effect)

    def placed(self, shape: Shape, dtype: DType, address: int, *, is_zero: bool) -> Value:
        """See `KernelContext`."""
        nbytes = address - self.scratch_memory.begin
        self.add(ListedPlaced, shape=shape, dtype=dtype, nbytes=nbytes, is_zero=is_zero)
        value = Value(shape, dtype, None, address)
        self.values.append(value)
        return value

    def ended(self, values: Sequence[Value]) -> None:
        """See `KernelContext`."""
        self.add(ListedEnded, numbers=tuple([self.made_place(each).number for each in values]))

    def gather_async(self, rows: RowGather, out: Value | None = None) -> RecordedOperation:
        """See `KernelContext`."""
        pointer, named, shape, strides = rows
        assert named.value is None, "rows are numbers of the host side"
        assert out is not None, "a value that the kernel has placed"
        self.writes_over, number = True, self.started()
        block = self.block_place(pointer, shape, strides)
        self.add(ListedGatherStart, block=block, rows=named, out=self.place(out), number=number)
        return RecordedOperation(self, number, out)
