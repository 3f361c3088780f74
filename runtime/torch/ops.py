"""Launching kernels."""

from collections.abc import Callable, Sequence

from runtime.core.requests import Handle, KernelLaunchMsg, PerPe, Request, StreamOrder
from runtime.language.caller import program_line
from runtime.language.value import Pointer
from runtime.torch.rank_state import running_rank
from runtime.torch.tensor import Tensor


def launch(name: str, kernel: Callable[..., object], *arguments: object) -> Handle:
    """Run `kernel(*arguments)` on every PE that holds a shard of one of the tensors among `arguments`.

    A tensor arrives as a `tl.Pointer` to the start of its virtual range on this SIP, everything else as it is. Returns at
    once; launches and tensor accesses of a rank take effect in the order in which they were made. Only a collective called
    with `async_op=True` overlaps with those after it that use none of its tensors. The handle tells what the launch cost once
    it is done.

    The kernel sends and receives through the queues of the default process group, if there is one.
    """
    tensors = [argument for argument in arguments if isinstance(argument, Tensor)]
    if not tensors:
        raise ValueError(
            f"launch of {name!r}: a kernel runs where its tensors are, so one argument must be a tensor"
        )
    pes = sorted(
        {(shard.spec.cube, shard.spec.pe) for tensor in tensors for shard in tensor.shards}
    )
    passed = tuple(
        Pointer(each.address, each.dtype) if isinstance(each, Tensor) else each
        for each in arguments
    )
    return launch_on(name, kernel, passed, tensors, pes)


def shard_pointers(tensor: Tensor) -> PerPe:
    """The argument that gives every PE the virtual address of its own shard."""
    return PerPe(
        {
            (shard.spec.cube, shard.spec.pe): Pointer(
                tensor.address + shard.spec.offset_bytes, tensor.dtype
            )
            for shard in tensor.shards
        }
    )


def launch_on(
    name: str,
    kernel: Callable[..., object],
    arguments: tuple[object, ...],
    tensors: Sequence[Tensor],
    pes: Sequence[tuple[int, int]],
    *,
    queue_table: str | None = None,
    call: str = "",
    overlaps: bool = False,
) -> Handle:
    """Run a kernel on given PEs, with `tensors` mapped there first.

    It uses the queue table `queue_table`, by default that of the default process group, if there is one. As the part of a collective
    `call` it runs behind everything submitted before; with `overlaps` what is submitted later and uses none of the tensors
    does not wait for it.
    """
    assert call or not overlaps, "kernels of users run one after the other"
    device, group = running_rank().device, running_rank().process_group
    if queue_table is None:
        queue_table = "" if group is None else group.base.name
    names = frozenset(tensor.name for tensor in tensors)
    mapping: list[Request] = [request for tensor in tensors for request in tensor.map_requests(pes)]
    if mapping:
        device.submit(mapping, f"mapping the tensors of kernel {name!r}", tensors=names)
    order = (
        StreamOrder.COLLECTIVE if overlaps else StreamOrder.BARRIER if call else StreamOrder.COMPUTE
    )
    request = KernelLaunchMsg(
        name, kernel, arguments, tuple(pes), queue_table, call, program_line()
    )
    handle = device.submit([request], f"kernel {name!r}", tensors=names, order=order)
    if overlaps:
        # Requests for a tensor that took the place of one of these would not wait.
        handle.holds = tuple(tensors)
    return handle
