"""A batch of products as operands lie in memory, and the machine that multiplies them."""

from collections.abc import Callable
from typing import NamedTuple

from runtime.core.dtypes import DType, uint8
from runtime.device.launches.device_tensor import DeviceTensor
from runtime.device.launches.strided_window import StridedWindow
from runtime.model.placement import DPPolicy

Memory = Callable[[int], DeviceTensor]
"""New memory of a number of bytes, which are dealt in equal shares over all PEs if they divide."""


class ProductCall(NamedTuple):
    """`out = a @ b + bias`: tensors (batch, m, k), (batch, k, n), (batch, m, n), (n,), all with
    elements. A matrix of `a` or `b` has its rows or its columns side by side in memory, one of
    `out` its rows; `out` may have a wider type than the operands. `memory` is where copies and
    parts of sums get theirs. With `in_order`, sums are those of 64 of the depth after the other.
    """

    a: StridedWindow
    b: StridedWindow
    out: StridedWindow
    bias: StridedWindow | None
    memory: Memory
    in_order: bool = False

    def matrix(self, number: int) -> "ProductCall":
        """One product of the batch."""
        a, b, out = (each.matrix(number) for each in self[:3])
        return self._replace(a=a, b=b, out=out)

    def new(self, count: int, dtype: DType) -> StridedWindow:
        """New memory for a number of elements."""
        return StridedWindow.of(self.memory(count * dtype.itemsize).view(dtype, 0, count))

    @property
    def used(self) -> list[DeviceTensor]:
        """All tensors that the product reads and writes."""
        given = (self.out, self.a, self.b, self.bias)
        return [each.window for each in given if each is not None]


def own_memory(like: DeviceTensor) -> Memory:
    """Memory of new tensors of the rank of another one."""
    state = like.state
    pes = state.pes.cubes * state.pes.per_cube
    everywhere = DPPolicy(cube="row_wise", pe="row_wise")

    def memory(nbytes: int) -> DeviceTensor:
        if nbytes % pes:
            return like.new((nbytes,), uint8)
        return DeviceTensor.allocate((nbytes,), uint8, everywhere, state)

    return memory
