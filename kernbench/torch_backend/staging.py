"""Windows of the tensors of a collective, and tensors of the device in place of those that have
none: tensors on the host, and those with gaps in memory.
"""

from math import prod

import torch

from kernbench.torch_backend.element_types import COMPUTED, hardware_type, moved_as
from kernbench.torch_backend.launches import window_of
from kernbench.torch_backend.operators import DEVICE
from runtime.torch.tensors.tensor import Tensor


class CollectiveStaging:
    """The tensors of one call. `copy_back` is called when the device has written them.

    Elements which are only `moved` may have any type whose size the hardware has. With `in_scratch`
    the call takes other memory in place of all tensors, which it neither reads nor writes.
    """

    def __init__(self, *, in_scratch: bool = False) -> None:
        self._in_scratch = in_scratch
        self._to_write: list[tuple[torch.Tensor, torch.Tensor]] = []
        self._kept: list[torch.Tensor] = []

    def read(
        self, tensor: torch.Tensor, *, moved: bool = False, shape: tuple[int, ...] | None = None
    ) -> Tensor:
        """The window of a tensor that the call reads."""
        return self._window(tensor, moved=moved, shape=shape, reads=True, writes=False)

    def written(
        self, tensor: torch.Tensor, *, moved: bool = False, shape: tuple[int, ...] | None = None
    ) -> Tensor:
        """The window of a tensor that the call writes."""
        return self._window(tensor, moved=moved, shape=shape, reads=False, writes=True)

    def both(self, tensor: torch.Tensor, *, moved: bool = False) -> Tensor:
        """The window of a tensor that the call reads and writes."""
        return self._window(tensor, moved=moved, shape=None, reads=True, writes=True)

    @property
    def copies_back(self) -> bool:
        """Whether tensors without a window are to be written."""
        return bool(self._to_write)

    def copy_back(self) -> None:
        """Copy what was written in place of tensors without a window."""
        for source, target in self._to_write:
            target.copy_(source)
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
    ) -> Tensor:
        used = tensor.detach()
        if self._in_scratch:
            used = torch.empty(used.shape, dtype=used.dtype, device=DEVICE)
        elif used.device.type != DEVICE or not used.is_contiguous():
            used = torch.empty(used.shape, dtype=used.dtype, device=DEVICE)
            if reads:
                used.copy_(tensor.detach())
            if writes:
                self._to_write.append((used, tensor.detach()))
        # Its memory must not be used again before the device is through with it.
        self._kept.append(used)
        window = window_of(used, _type(used.dtype, moved=moved)).window
        return window.view((prod(used.shape),) if shape is None else shape)


def _type(dtype: torch.dtype, *, moved: bool) -> object:
    if not moved:
        if dtype not in COMPUTED:
            raise TypeError(
                f"a reduction of elements of {dtype}: the engines do not compute with this type; "
                "convert the tensor before, for example to torch.int32 or torch.float32"
            )
        return hardware_type(dtype)
    found = moved_as(dtype)
    if found is None:
        raise TypeError(f"elements of {dtype} have {dtype.itemsize} bytes, which no DMA moves")
    return found
