"""Launches of kernels of the user: operands, results, the programs and their PEs.

The programs of a grid are numbered with axis 0 fastest. Program p of n belongs to the part [p / n,
(p + 1) / n) of the bytes of one tensor, by default of the first result, and runs on the PE that
holds the first byte of this part. So a program whose number rises with the addresses which it
writes runs where its elements lie. Without a grid, each PE that holds a part of this tensor runs
one program.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, cast

from torch import Tensor

from kernbench.torch_backend.launching.launches import pointer_of, window_of
from kernbench.torch_backend.own_kernels.kernel_signature import Derived, KernelSignature
from kernbench.torch_backend.runtime.element_types import hardware_type
from kernbench.torch_backend.runtime.storages import storages
from runtime.core import dtypes
from runtime.core.program_grid import ProgramGrid, checked_grid
from runtime.device.launches.device_tensor import DeviceTensor
from runtime.device.launches.launch import launch_on
from runtime.device.regions.regions import Pe

_FIRST_PE: Pe = (0, 0)


class KernelPlan(NamedTuple):
    """A kernel with its parameters, and how its programs are launched: the function of its grid,
    those of its sizes, and the parameter on whose PEs it runs.
    """

    name: str
    kernel: Callable[..., object]
    signature: KernelSignature
    grid: Derived | None
    sizes: Mapping[str, Derived]
    placement: str


def launch_kernel(
    plan: KernelPlan, arguments: Mapping[str, object], results: Sequence[Tensor]
) -> None:
    """Queue a kernel that writes `results`, which are contiguous, for the arguments of a call."""
    signature = plan.signature
    tensors = _tensors_of(plan, arguments) | dict(
        zip(signature.roles.outputs, results, strict=True)
    )
    written = [tensors[each] for each in (*signature.roles.outputs, *signature.roles.written)]
    if not any(each.numel() for each in written):
        return
    windows = {name: window_of(each) for name, each in tensors.items()}
    if plan.placement not in windows:
        raise ValueError(f"{plan.name}: {plan.placement} is None, and the kernel runs on its PEs")
    read = {**arguments, **tensors}
    sizes = {name: each.of(read) for name, each in plan.sizes.items()}
    passed = {
        **arguments,
        **sizes,
        **{name: pointer_of(each) for name, each in windows.items()},
    }
    grid, pes = _programs(plan, windows[plan.placement].window, read)
    launch_on(
        plan.name,
        plan.kernel,
        tuple(passed[each] for each in signature.order),
        [each.window for each in windows.values()],
        pes,
        grid=grid,
    )
    if (known := storages().integers) is not None:
        for each in written:
            known.write(each, None)


def _tensors_of(plan: KernelPlan, arguments: Mapping[str, object]) -> dict[str, Tensor]:
    """The tensors of a call as the kernel reads them."""
    tensors = dict[str, Tensor]()
    for name in plan.signature.tensors:
        tensor = cast(Tensor | None, arguments[name])
        if tensor is None:
            continue
        _check_type(plan.name, name, tensor)
        if name not in plan.signature.roles.strided and not tensor.is_contiguous():
            if name in plan.signature.roles.written:
                raise ValueError(
                    f"{plan.name}: {name}, which the kernel writes, has strides {tensor.stride()} "
                    f"and shape {tuple(tensor.shape)}; pass a contiguous tensor, or name {name!r} "
                    "in strided= and give the kernel the strides"
                )
            tensor = tensor.contiguous()
        tensors[name] = tensor
    return tensors


def _check_type(kernel: str, name: str, tensor: Tensor) -> None:
    try:
        hardware_type(tensor.dtype)
    except KeyError:
        known = ", ".join(each.torch_name for each in dtypes.ALL)
        raise TypeError(
            f"{kernel}: {name} has elements of {tensor.dtype}, which the hardware has not; it has "
            f"{known}"
        ) from None


def _programs(
    plan: KernelPlan, placed: DeviceTensor, arguments: Mapping[str, object]
) -> tuple[ProgramGrid, list[Pe]]:
    """The grid of a launch with the first program of each PE, and these PEs."""
    if plan.grid is None:
        pes = sorted({(each.spec.cube, each.spec.pe) for each in placed.shards})
        return ProgramGrid((len(pes),)), pes
    try:
        lengths = checked_grid(plan.grid.of(arguments))
    except (TypeError, ValueError) as error:
        raise type(error)(f"{plan.name}: {error}") from None
    first = first_programs(placed, lengths.count)
    return ProgramGrid(lengths.lengths, tuple(first.values())), list(first)


def first_programs(placed: DeviceTensor, count: int) -> dict[Pe, int]:
    """The first program of each PE that has one, in rising order."""
    if not placed.nbytes:
        return {_FIRST_PE: 0}
    first = dict[Pe, int]()
    for shard in placed.shards:
        spec = shard.spec
        begin, end = (
            -(-each * count // placed.nbytes)
            for each in (spec.offset_bytes, spec.offset_bytes + spec.nbytes)
        )
        if begin < end:
            first[spec.cube, spec.pe] = begin
    return first
