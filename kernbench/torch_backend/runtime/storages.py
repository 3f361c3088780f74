"""The storages of PyTorch's tensors: bytes in simulated HBM, and windows of them.

A storage of B bytes is dealt over P = min(all PEs, max(1, B // 4096)) PEs, the first ones of the
SIP in (cube, PE) order: PE i holds one contiguous share, and all shares but the last one have
ceil(B / P) bytes, rounded up to 256. The rule depends on B alone. So tensors of equal bytes lie
alike, and no element lies on two PEs. A share begins at the first channel of its slice of HBM: the
time of an operator does not depend on what was allocated before its tensors. The virtual range of a
storage is contiguous: a view is a window of it, with any offset, strides and element type, and its
elements keep their PEs.
"""

from dataclasses import dataclass, field
from functools import partial
from math import lcm

import torch

from kernbench.torch_backend.runtime.known_integers import KnownIntegers, Later, NoDataError
from runtime.core.dtypes import DType, uint8
from runtime.core.errors import AllocationError
from runtime.device.kernels.bounds import HostIndices, IndexBounds
from runtime.device.launches.device_tensor import DeviceTensor
from runtime.device.launches.strided_window import StridedWindow
from runtime.device.memory.storage import Storage, Window
from runtime.device.rank.rank_state import RankState, running_rank
from runtime.device.rank.shard_layout import ShardLayout
from runtime.language.caller import program_line
from runtime.language.value import Array
from runtime.model.placement import DPPolicy, ShardSpec

PAGE_BYTES = 4096
SHARE_BYTES = 256
"""A share is a multiple of it: a burst of HBM, and of every element."""
_POINTER = 1 << 46
"""Added to virtual addresses in data pointers: no page of a process lies there."""


_View = tuple[int, int, str]
"""The first byte of a window in its storage, its bytes, and the name of its element type."""


@dataclass
class Storages:
    """The storages of the rank that runs in this process, by data pointer. `integers` are their
    known elements in a run without data.

    A second rank in the process is refused: PyTorch keeps gradient mode, autocast, the default
    device and the autograd engine's state per thread, and the ranks of a process share a thread.
    """

    state: RankState = field(default_factory=running_rank)
    integers: KnownIntegers | None = None
    _layouts: dict[int, ShardLayout] = field(default_factory=dict[int, ShardLayout])
    _memory: dict[int, DeviceTensor] = field(default_factory=dict[int, DeviceTensor])
    _windows: dict[int, dict[_View, DeviceTensor]] = field(
        default_factory=dict[int, dict[_View, DeviceTensor]]
    )

    def __post_init__(self) -> None:
        if not self.state.data:
            self.integers = KnownIntegers()

    def rank_state(self) -> RankState:
        """The state of the rank that runs; `RuntimeError` for a second rank of the process."""
        running = running_rank()
        if running is not self.state:
            raise RuntimeError(
                f"rank {running.rank} runs in the process of rank {self.state.rank}: PyTorch keeps "
                "gradient mode, autocast and its default device per thread, which ranks of one "
                "process share; start each SIP in a process of its own (omit --procs)"
            )
        return running

    def allocate(self, nbytes: int) -> int:
        """The data pointer of a new storage; `OutOfMemoryError` of PyTorch if a memory is full."""
        state = self.rank_state()
        layout = self._layouts.get(nbytes)
        if layout is None:
            hbm = state.topology.hbm
            align = lcm(SHARE_BYTES, hbm.burst_bytes * hbm.num_pcs)
            layout = state.memory.layout(shares(nbytes, state), nbytes, align)
            self._layouts[nbytes] = layout
        state.tensors += 1
        try:
            allocation = state.memory.allocate_as(layout)
        except AllocationError as error:
            raise torch.OutOfMemoryError(
                f"ahbm out of memory: a storage of {nbytes:,} bytes has no room on SIP "
                f"{state.rank}, where tensors take {state.memory.allocated_bytes:,} bytes "
                f"(torch.ahbm.memory_summary() has more): {error}"
            ) from None
        storage = Storage(f"s{state.tensors}[{nbytes}]", allocation)
        window = Window(storage, storage.address, storage.shards, is_flat=True)
        policy = DPPolicy(cube="row_wise", pe="row_wise")
        whole = DeviceTensor(
            state, window, shape=(nbytes,), dtype=uint8, policy=policy, layout=None
        )
        pointer = _POINTER + storage.address
        self._memory[pointer] = whole
        return pointer

    def release(self, pointer: int) -> None:
        """Drop a storage; its memory is free for the next one."""
        self._memory.pop(pointer, None)
        self._windows.pop(pointer, None)
        if self.integers is not None:
            self.integers.release(pointer)

    def resized(self, old: int, new: int, nbytes: int) -> None:
        """Copy the first bytes of a storage to another one, on the device."""
        source, target = (self._memory[each].view(uint8, 0, nbytes) for each in (old, new))
        target.copy_(source)
        if self.integers is not None:
            self.integers.moved(old, new, self._memory[new].nbytes)

    def window(self, tensor: torch.Tensor, dtype: DType) -> StridedWindow:
        """The memory of a tensor of the device, with elements of `dtype`, which has their size."""
        return StridedWindow(self._view(tensor, dtype), tuple(tensor.shape), tensor.stride())

    def bytes_of(self, tensor: torch.Tensor) -> DeviceTensor:
        """The bytes from the first to the last element of a tensor in memory."""
        return self._view(tensor, uint8)

    def _view(self, tensor: torch.Tensor, dtype: DType) -> DeviceTensor:
        if not tensor.numel():
            return self.no_element().view(dtype, 0, 0)
        size, shape, strides = tensor.itemsize, tensor.shape, tensor.stride()
        last = sum((length - 1) * by for length, by in zip(shape, strides, strict=True))
        if tensor.is_cpu:
            raise RuntimeError(
                "Expected all tensors to be on the same device, but found at least two devices, "
                f"ahbm:{self.state.rank} and cpu!"
            )
        pointer = tensor.untyped_storage().data_ptr()
        # A window takes longer to make than a launch takes to use it.
        known = self._windows.setdefault(pointer, {})
        key = (int(tensor.storage_offset()) * size, (last + 1) * size, dtype.name)
        if key not in known:
            start, nbytes, _ = key
            if not pointer:
                raise RuntimeError(
                    f"a tensor of shape {tuple(shape)} on {tensor.device} has a storage of 0 "
                    "bytes, which was freed (storage.resize_(0)): resize it before its elements "
                    "are used"
                )
            known[key] = self._memory[pointer].view(dtype, start, nbytes // dtype.itemsize)
        return known[key]

    def bounded(self, bounds: IndexBounds, index: torch.Tensor, reader: str) -> IndexBounds:
        """The bounds of indices by which a kernel reads memory, with the indices themselves in a
        run without data; `NoDataError` if they are not known.
        """
        bounds = self.reported(bounds)
        if self.integers is None:
            return bounds
        what, elements = "an index, and with it an address,", self.integers.elements(index)
        unknown = self.integers.unknown(index, reader, what)
        if elements is None:
            raise unknown
        known = elements.clone() if isinstance(elements, torch.Tensor) else elements
        return bounds._replace(known=HostIndices(partial(_flattened, known, unknown)))

    def reported(self, bounds: IndexBounds) -> IndexBounds:
        """The bounds of indices of a kernel that is launched now, whose errors the program raises
        when it next waits for the device.
        """
        note = f"in a kernel launched at {program_line()}"
        return bounds._replace(report=partial(_report, self.state.device.faults, note))

    def memory(self, pointer: int) -> DeviceTensor:
        """The bytes of a storage."""
        return self._memory[pointer]

    def no_element(self) -> DeviceTensor:
        """The memory of tensors without elements: no byte."""
        if _POINTER not in self._memory:
            self._memory[_POINTER] = self._memory.pop(self.allocate(SHARE_BYTES))
        return self._memory[_POINTER].view(uint8, 0, 0)


def _report(faults: list[Exception], note: str, error: IndexError) -> None:
    error.add_note(note)
    faults.append(error)


def _flattened(elements: torch.Tensor | Later, unknown: NoDataError) -> Array:
    """The elements in row-major order, when a kernel runs that uses them."""
    known = elements.elements if isinstance(elements, Later) else elements
    if known is None:
        raise unknown
    return known.reshape(-1).numpy()


class _Process:
    """The storages of this process, once a rank in it is connected. Module state, which kernbench
    avoids elsewhere: PyTorch has one allocator of the device in a process.
    """

    storages: Storages | None = None


def storages() -> Storages:
    """The storages of the rank that runs in this process."""
    if _Process.storages is None:
        _Process.storages = Storages()
    return _Process.storages


def shares(nbytes: int, state: RankState) -> tuple[ShardSpec, ...]:
    """The shards of a storage by the rule of this module."""
    pes = state.pes
    count = min(pes.cubes * pes.per_cube, max(1, nbytes // PAGE_BYTES))
    share = -(-nbytes // count)
    share = -(-share // SHARE_BYTES) * SHARE_BYTES
    places = ((start, *pes.at(index)) for index, start in enumerate(range(0, nbytes, share)))
    return tuple(
        ShardSpec(
            sip=state.rank,
            cube=cube,
            pe=pe,
            offset_bytes=start,
            nbytes=min(share, nbytes - start),
            spans=((start, min(start + share, nbytes)),),
        )
        for start, cube, pe in places
    )
