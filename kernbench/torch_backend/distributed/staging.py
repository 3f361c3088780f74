"""Windows of the tensors of a collective, and memory of the device in place of those that have
none: tensors on the host, and those with gaps in memory.
"""

import functools
from collections.abc import Callable
from math import prod
from sys import is_finalizing

import numpy as np
import torch

from kernbench.torch_backend.aten.operators import DEVICE
from kernbench.torch_backend.launching.launches import window_of
from kernbench.torch_backend.runtime.element_types import COMPUTED, hardware_type, moved_as
from kernbench.torch_backend.runtime.pytorch_api import from_numpy
from kernbench.torch_backend.runtime.storages import storages
from runtime.core.dtypes import DType
from runtime.device.launches.device_tensor import DeviceTensor


class StagedElements:
    """Memory of the device for the elements of a tensor of the host, in row-major order; it is free
    when the object dies.
    """

    def __init__(self, tensor: torch.Tensor) -> None:
        self._tensor = tensor
        self._pointer = storages().allocate(tensor.nbytes) if tensor.nbytes else None

    def __del__(self, is_finalizing: Callable[[], bool] = is_finalizing) -> None:
        # A default, since Python empties the modules before the last objects die.
        if not is_finalizing() and self._pointer is not None:
            storages().release(self._pointer)

    def bytes(self) -> DeviceTensor:
        """The memory."""
        return (
            storages().no_element() if self._pointer is None else storages().memory(self._pointer)
        )

    def write(self) -> None:
        """Copy the elements to the device, as they are now."""
        if self._pointer is not None:
            elements = self._tensor.resolve_conj().resolve_neg().contiguous()
            self.bytes()[...] = elements.view(-1).view(torch.uint8).numpy()

    def read(self) -> None:
        """Copy the elements from the device, and wait for them. In a run without data the work
        handle writes those that are known.
        """
        if self._pointer is not None:
            read = np.array(self.bytes().numpy())
            if storages().integers is None:
                elements = from_numpy(read).view(self._tensor.dtype)
                self._tensor.copy_(elements.view(self._tensor.shape))


class CollectiveStaging:
    """The tensors of one call. `copy_back` is called when the device has written them.

    Elements which are only `moved` may have any type whose size the hardware has. With `in_scratch`
    the call takes other memory in place of all tensors, which it neither reads nor writes.
    """

    def __init__(self, *, in_scratch: bool = False) -> None:
        self._in_scratch = in_scratch
        self._to_write: list[Callable[[], object]] = []
        self._kept: list[torch.Tensor | StagedElements] = []

    def read(
        self, tensor: torch.Tensor, *, moved: bool = False, shape: tuple[int, ...] | None = None
    ) -> DeviceTensor:
        """The window of a tensor that the call reads."""
        return self._window(tensor, moved=moved, shape=shape, reads=True, writes=False)

    def written(
        self, tensor: torch.Tensor, *, moved: bool = False, shape: tuple[int, ...] | None = None
    ) -> DeviceTensor:
        """The window of a tensor that the call writes."""
        return self._window(tensor, moved=moved, shape=shape, reads=False, writes=True)

    def both(self, tensor: torch.Tensor, *, moved: bool = False) -> DeviceTensor:
        """The window of a tensor that the call reads and writes."""
        return self._window(tensor, moved=moved, shape=None, reads=True, writes=True)

    @property
    def copies_back(self) -> bool:
        """Whether tensors without a window are to be written."""
        return bool(self._to_write)

    def copy_back(self) -> None:
        """Copy what was written in place of tensors without a window."""
        for write in self._to_write:
            write()
        self._to_write.clear()
        self._kept.clear()

    def _window(
        self,
        tensor: torch.Tensor,
        *,
        moved: bool,
        shape: tuple[int, ...] | None,
        reads: bool,
        writes: bool,
    ) -> DeviceTensor:
        used = tensor.detach()
        dtype = _type(used.dtype, moved=moved)
        length = (prod(used.shape),) if shape is None else shape
        if used.is_cpu or self._in_scratch:
            copy = StagedElements(used)
            self._kept.append(copy)
            if not self._in_scratch:
                if reads:
                    copy.write()
                if writes:
                    self._to_write.append(copy.read)
            return copy.bytes().view(dtype, 0, prod(length)).view(length)
        if not used.is_contiguous():
            target = used
            used = torch.empty(used.shape, dtype=used.dtype, device=DEVICE)
            if reads:
                used.copy_(target)
            if writes:
                self._to_write.append(functools.partial(target.copy_, used))
        # Its memory must not be used again before the device is through with it.
        self._kept.append(used)
        return window_of(used, dtype).window.view(length)


def _type(dtype: torch.dtype, *, moved: bool) -> DType:
    if not moved:
        if dtype not in COMPUTED:
            raise TypeError(
                f"a reduction of elements of {dtype}: the engines do not compute with this type; "
                "convert the tensor before, for example to torch.int32 or torch.float32"
            )
        return hardware_type(dtype)
    carrier = moved_as(dtype)
    if carrier is None:
        raise TypeError(f"elements of {dtype} have {dtype.itemsize} bytes, which no DMA moves")
    return carrier
