"""The properties of a tensor, and its elements as numbers and arrays of the host.


Properties take no time. Every read of elements is one read of the device, which waits for the work
before it; iteration over a tensor reads it once.
"""

from collections.abc import Iterator
from numbers import Real
from typing import Any, cast

import numpy as np

from runtime.device.launches.device_tensor import DeviceTensor
from runtime.device.memory.sizes import axis_of
from runtime.device.memory.stored_tensor import StoredTensor
from runtime.device.streams.device import device, own_device
from runtime.language.value import Array, row_major


class HostCopy:
    """A copy of the elements of a tensor on the host, as `x.cpu()` returns it.

    It has what reads a tensor of PyTorch on the CPU; for arithmetic take `numpy()`.
    """

    def __init__(self, array: Array) -> None:
        self._array = array
        self.shape, self.device = tuple(array.shape), device("cpu")

    def numpy(self) -> Array:
        """The elements."""
        return self._array

    def cpu(self) -> "HostCopy":
        """Itself."""
        return self

    detach = cpu

    def item(self) -> Any:
        """The only element as a number of Python."""
        return as_number(self._array)

    def tolist(self) -> Any:
        """The elements as nested lists of numbers of Python."""
        return as_list(self._array)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:  # noqa: FBT001
        return np.array(self._array, dtype=dtype, copy=copy)

    def __getitem__(self, index: Any) -> Array:
        return self._array[index]

    def __len__(self) -> int:
        return len(self._array)

    def __repr__(self) -> str:
        return f"tensor({self._array!r}, device='cpu')"


class TensorReads(DeviceTensor):
    """The properties of a tensor, and the reads of its elements."""

    @property
    def device(self) -> device:
        """The device of the rank."""
        return own_device()

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def requires_grad(self) -> bool:
        """False: there are no gradients."""
        return False

    def dim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    def size(self, dim: int | None = None) -> Any:
        """The shape, or the length of an axis."""
        return self.shape if dim is None else self.shape[self._axis(dim)]

    def stride(self, dim: int | None = None) -> Any:
        """The distances, in elements, of neighbours along every axis, or along one: those of
        row-major order, which every tensor has for the host.
        """
        strides = row_major(self.shape)
        return strides if dim is None else strides[self._axis(dim)]

    def _axis(self, dim: int) -> int:
        axis = axis_of(dim, len(self.shape))
        if not self.shape:
            raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
        return axis

    def element_size(self) -> int:
        """Bytes of one element."""
        return self.itemsize

    def data_ptr(self) -> int:
        """The virtual address of the first element on this SIP."""
        return self.address

    def is_contiguous(self) -> bool:
        """Whether the elements are in row-major order in the virtual range; only such tensors have
        views.
        """
        return self.is_flat

    def cpu(self) -> HostCopy:
        """The elements on the host."""
        return HostCopy(self.numpy())

    def item(self) -> Any:
        """The only element as a number of Python; `RuntimeError` for another number of elements,
        and in a run without data.
        """
        self._check_single()
        return as_number(self.numpy())

    def tolist(self) -> Any:
        """The elements as nested lists of numbers of Python; `RuntimeError` in a run without
        data.
        """
        return as_list(self.numpy())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:  # noqa: FBT001
        """The elements for numpy: one read."""
        if copy is False:
            raise ValueError("the elements of a tensor on the device are read as a copy")
        return np.asarray(self.numpy(), dtype=dtype)

    def __iter__(self) -> Iterator[Array]:
        """The rows on the host, from one read; `unbind` makes windows on the device instead."""
        if not self.shape:
            raise TypeError("iteration over a 0-d tensor")
        return iter(self.numpy())

    def __contains__(self, element: object) -> bool:
        """Whether an element is equal to a number, or to a tensor with a shape that broadcasts."""
        if not isinstance(element, StoredTensor | Real | np.bool):
            raise RuntimeError(  # noqa: TRY004 - as in PyTorch
                "Tensor.__contains__ only supports Tensor or scalar, but you passed in a "
                f"{type(element)}."
            )
        if isinstance(element, StoredTensor):
            return bool((self.numpy() == element.numpy()).any())
        return bool((self.numpy() == cast("float", element)).any())

    def __float__(self) -> float:
        return float(self._scalar())

    def __int__(self) -> int:
        return int(self._scalar())

    def __format__(self, spec: str) -> str:
        """A tensor without axes is formatted as its number; of others only `repr` exists."""
        if self.shape or not self._state.data:
            return object.__format__(self, spec)
        return format(self.item(), spec)

    def __index__(self) -> int:
        if self.dtype.is_floating_point or self.numel() != 1:
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return int(self.item())

    def _scalar(self) -> Any:
        if self.numel() != 1:
            raise ValueError(
                "only one element tensors can be converted to Python scalars, not one of "
                f"{self.numel()} elements"
            )
        return self.item()

    def _check_single(self) -> None:
        if self.numel() != 1:
            raise RuntimeError(
                f"a Tensor with {self.numel()} elements cannot be converted to Scalar"
            )


def as_number(array: Array) -> Any:
    """The only element of an array as a number of Python."""
    return as_list(array.reshape(-1))[0]


def as_list(array: Array) -> Any:
    """The elements of an array as nested lists of numbers of Python."""
    if isinstance(array, np.ma.MaskedArray):
        raise RuntimeError(  # noqa: TRY004 - the run is wrong, not the type
            "a run without data has no values: check torch.ahbm.has_data() before they are read"
        )
    # Types that are not numpy's own have no numbers of Python.
    return (array if array.dtype.kind in "biuf" else array.astype(np.float64)).tolist()
