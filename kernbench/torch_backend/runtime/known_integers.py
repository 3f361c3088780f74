"""Integers of the device that are known to the host in a run without data (`--no-data`).

Times depend on integers that are addresses: the rows of an embedding, the classes of a loss. A
tensor of integers or bools is known if the host can compute it: it was copied from the CPU, is a
constant, or is the result of an operator whose operands are known. Numbers of floating point are
never known, nor is what depends on them.

Commands that use one storage run in the order of the calls, in whichever streams they are. So what
the host computes in that order is what the memory of the device has, in a run with data, when a
kernel begins. Each storage with known elements has two copies on the host: its bytes, and a mask of
those that are known.
"""

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import NamedTuple

import torch
from torch import Tensor

_MASKS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
"""The type of a mask's elements, by the size of those that it describes."""
_KNOWN, _UNKNOWN = -1, 0
_ADVICE = "guard this line with torch.ahbm.has_data(), or run without --no-data"


class NoDataError(RuntimeError):
    """A use of elements that a run without data has not: the operator or method, what it reads,
    and why the elements are not known.
    """

    def __init__(self, reader: str, what: str, reason: str) -> None:
        super().__init__(reader, what, reason)

    def __str__(self) -> str:
        reader, what, reason = self.args
        return f"{reader}: {what} is not known, because {reason}; {_ADVICE}"


class Later:
    """Elements that will be known: `compute` returns them, or None, once `is_complete`.

    A kernel and a read which the device orders behind them may compute them earlier.
    """

    def __init__(
        self, is_complete: Callable[[], bool], compute: Callable[[], Tensor | None]
    ) -> None:
        self.is_complete, self._compute = is_complete, compute

    @cached_property
    def elements(self) -> Tensor | None:
        """The elements; None if they are not known."""
        return self._compute()


Elements = Tensor | Later | None
"""Elements on the host; None if they are not known."""


def when_all(given: Sequence[Later], compute: Callable[[], Tensor | None]) -> Later:
    """Elements that depend on others."""
    return Later(lambda: all(each.is_complete() for each in given), compute)


class HostWindow(NamedTuple):
    """The window of a storage that a tensor is, for copies of the bytes on the host. It keeps no
    memory of the device.
    """

    pointer: int
    storage_bytes: int
    dtype: torch.dtype
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @classmethod
    def of(cls, tensor: Tensor) -> "HostWindow":
        """The window of a tensor of the device."""
        storage = tensor.untyped_storage()
        return cls(
            pointer=storage.data_ptr(),
            storage_bytes=storage.nbytes(),
            dtype=tensor.dtype,
            offset=int(tensor.storage_offset()),
            shape=tuple(tensor.shape),
            strides=tensor.stride(),
        )

    def elements(self, content: Tensor, dtype: torch.dtype) -> Tensor:
        """The elements of the window, in a copy of the bytes of the storage."""
        storage = content.untyped_storage()
        return torch.empty(0, dtype=dtype).set_(storage, self.offset, self.shape, self.strides)


class _Known(NamedTuple):
    """The bytes of a storage, and the mask of those that are known."""

    elements: Tensor
    mask: Tensor

    @classmethod
    def of_bytes(cls, nbytes: int) -> "_Known":
        return cls(*(torch.zeros(nbytes, dtype=torch.uint8) for _ in range(2)))

    def copy(self, nbytes: int) -> "_Known":
        """Copies with as many bytes."""
        copies = _Known.of_bytes(nbytes)
        for source, target in zip(self, copies, strict=True):
            count = min(source.nbytes, nbytes)
            target[:count].copy_(source[:count])
        return copies

    def elements_of(self, window: HostWindow) -> Tensor | None:
        if bool((window.elements(self.mask, _mask_type(window)) == _UNKNOWN).any()):
            return None
        return window.elements(self.elements, window.dtype)

    def write(self, window: HostWindow, elements: Tensor | None) -> None:
        if elements is None:
            if window.dtype.itemsize in _MASKS:
                window.elements(self.mask, _mask_type(window)).fill_(_UNKNOWN)
            else:
                self.mask.fill_(_UNKNOWN)
            return
        window.elements(self.elements, window.dtype).copy_(elements)
        window.elements(self.mask, _mask_type(window)).fill_(_KNOWN)


class KnownIntegers:
    """The known elements of the storages of a rank, by data pointer."""

    def __init__(self) -> None:
        self._storages: dict[int, _Known] = {}
        # What will be written to a storage, in this order.
        self._later: dict[int, list[tuple[HostWindow, Later]]] = {}

    def elements(self, tensor: Tensor) -> Elements:
        """The elements of a tensor of the device, as a window of the bytes on the host."""
        if not is_integer(tensor):
            return None
        if not tensor.numel():
            return torch.empty(tensor.shape, dtype=tensor.dtype)
        window = HostWindow.of(tensor)
        self._settle(window.pointer)
        known, waiting = self._storages.get(window.pointer), self._later.get(window.pointer)
        if known is None:
            return None
        if not waiting:
            return known.elements_of(window)
        # As they will be if nothing else is written in the meantime.
        later = tuple(waiting)
        compute = partial(_settled, known.copy(window.storage_bytes), later, window)
        return when_all([each for _, each in later], compute)

    def read(self, tensor: Tensor, reader: str, what: str) -> Tensor:
        """The elements of a tensor which the host has read in simulated time; `NoDataError` if one
        of them is not known.
        """
        elements = self.elements(tensor)
        if isinstance(elements, Later):
            elements = elements.elements
        if elements is None:
            raise self.unknown(tensor, reader, what)
        return elements

    def unknown(self, tensor: Tensor, reader: str, what: str) -> NoDataError:
        """The error of a tensor that is not known."""
        reason = "this run simulates no data (--no-data)"
        if is_integer(tensor):
            reason += (
                ", and these integers depend on numbers of floating point, were not written, or "
                "come from another rank on which they are not known"
            )
        return NoDataError(reader, what, reason)

    def write(self, target: Tensor, elements: Elements) -> None:
        """The tensor has these elements from now on, broadcast and converted."""
        if not target.numel():
            return
        if not is_integer(target):
            elements = None
        pointer = target.untyped_storage().data_ptr()
        # Most storages have numbers of floating point.
        if elements is None and pointer not in self._storages:
            return
        window = HostWindow.of(target)
        self._settle(pointer)
        known = self._storages.get(pointer)
        if known is None:
            known = self._storages[pointer] = _Known.of_bytes(window.storage_bytes)
        waiting = self._later.get(pointer)
        if waiting is None and not isinstance(elements, Later):
            known.write(window, elements)
            return
        if not isinstance(elements, Later):
            # Behind what is written later.
            copy = None if elements is None else elements.clone()
            elements = Later(lambda: True, lambda: copy)
        self._later.setdefault(pointer, []).append((window, elements))

    def moved(self, old: int, new: int, new_bytes: int) -> None:
        """A storage was copied to another one, of `new_bytes`, or its first bytes. What it has
        more was not written, and is taken for 0 if all before it is known: the objects that ranks
        exchange end in such bytes.
        """
        known = self._storages.get(old)
        if known is None:
            return
        moved = self._storages[new] = known.copy(new_bytes)
        if bool(known.mask.all()) or old in self._later:
            moved.mask[known.mask.nbytes :] = 0xFF
        if old in self._later:
            self._later[new] = [
                (window._replace(pointer=new), later) for window, later in self._later[old]
            ]

    def release(self, pointer: int) -> None:
        """Forget a storage."""
        self._storages.pop(pointer, None)
        self._later.pop(pointer, None)

    def _settle(self, pointer: int) -> None:
        """Write what has come, when all of it has."""
        waiting = self._later.get(pointer)
        if waiting and all(later.is_complete() for _, later in waiting):
            for window, later in self._later.pop(pointer):
                self._storages[pointer].write(window, later.elements)


def _settled(
    known: _Known, waiting: Sequence[tuple[HostWindow, Later]], window: HostWindow
) -> Tensor | None:
    for each, later in waiting:
        known.write(each, later.elements)
    return known.elements_of(window)


def is_integer(tensor: Tensor) -> bool:
    """Whether a tensor has integers or bools."""
    return not tensor.dtype.is_floating_point and not tensor.dtype.is_complex


def _mask_type(window: HostWindow) -> torch.dtype:
    return _MASKS[window.dtype.itemsize]
