"""Python objects in collectives and messages: they travel as bytes through the simulated fabric,
after their sizes.

As in PyTorch, every call exchanges the sizes first, then the bytes, padded to the largest object
where all ranks send; it returns when the objects have arrived. Objects are plain data, see
`object_codec`. A run without data (`--no-data`) moves no bytes: a `RuntimeError`.
"""

from collections.abc import Sequence
from typing import cast

import numpy as np

from runtime.core.dtypes import int64, uint8
from runtime.device.collectives.gathers import all_gather_into_tensor, broadcast, gather, scatter
from runtime.device.collectives.launching import member
from runtime.device.collectives.operands import check_absent, rank_in_group
from runtime.device.collectives.point_to_point import recv, send
from runtime.device.collectives.process_group import Group
from runtime.device.rank.rank_state import ProcessGroup, running_rank
from runtime.language.value import Array
from runtime.torch.distributed.object_codec import decode, encode
from runtime.torch.tensors.creation import empty, from_numpy
from runtime.torch.tensors.tensor import Tensor


def broadcast_object_list(
    object_list: list[object],
    src: int | None = None,
    group: Group = None,
    device: object = None,  # noqa: ARG001 - PyTorch's, a rank has one device
    group_src: int | None = None,
) -> None:
    """Replace the objects in the list by those of rank `src`, by default rank 0; every rank passes
    a list of the same length.

    `device` has no effect: a rank has one.
    """
    process_group = _joined("broadcast_object_list", group)
    if process_group is None:
        return
    default = 0 if src is None and group_src is None else src
    root = rank_in_group(process_group, "root", "src", default, group_src)
    _check_list("broadcast_object_list", "object_list", object_list, 1)
    encoded = (
        [encode(each, f"object_list[{index}]") for index, each in enumerate(object_list)]
        if root == process_group.rank
        else []
    )
    sizes = _int64([len(each) for each in encoded] or [0] * len(object_list))
    broadcast(sizes, group=process_group, group_src=root)
    counts = [int(count) for count in sizes.numpy()]
    content = _bytes(b"".join(encoded), sum(counts))
    broadcast(content, group=process_group, group_src=root)
    if not encoded:
        _decode_list(object_list, content, counts)


def all_gather_object(object_list: list[object], obj: object, group: Group = None) -> None:
    """Replace `object_list[r]` by the object of rank r, on every rank; r is a rank of the group."""
    process_group = _joined("all_gather_object", group)
    if process_group is None:
        return
    _check_list("all_gather_object", "object_list", object_list, process_group.world_size)
    encoded = encode(obj, "obj")
    sizes = _all_sizes(encoded, process_group)
    own, whole = _bytes(encoded, max(sizes)), _rows(len(sizes), max(sizes))
    all_gather_into_tensor(whole, own, process_group)
    _decode_rows(object_list, whole, sizes)


def gather_object(
    obj: object,
    object_gather_list: list[object] | None = None,
    dst: int | None = None,
    group: Group = None,
    group_dst: int | None = None,
) -> None:
    """Replace `object_gather_list[r]` on rank `dst`, by default rank 0, by the object of rank r; r
    is a rank of the group. Other ranks pass no list.
    """
    process_group = _joined("gather_object", group)
    if process_group is None:
        return
    default = 0 if dst is None and group_dst is None else dst
    root, ranks = (
        rank_in_group(process_group, "root", "dst", default, group_dst),
        process_group.sips,
    )
    if root == process_group.rank:
        if not object_gather_list:
            raise ValueError(
                "Argument ``object_gather_list`` must be specified on destination rank."
            )
        _check_list("gather_object", "object_gather_list", object_gather_list, len(ranks))
    else:
        check_absent("object_gather_list", object_gather_list, "destination", ranks[root])
    encoded = encode(obj, "obj")
    sizes = _all_sizes(encoded, process_group)
    own = _bytes(encoded, max(sizes))
    if root != process_group.rank:
        gather(own, group=process_group, group_dst=root)
        return
    whole = _rows(len(sizes), max(sizes))
    gather(own, whole.unbind(), group=process_group, group_dst=root)
    _decode_rows(cast("list[object]", object_gather_list), whole, sizes)


def scatter_object_list(
    scatter_object_output_list: list[object],
    scatter_object_input_list: Sequence[object] | None = None,
    src: int | None = None,
    group: Group = None,
    group_src: int | None = None,
) -> None:
    """Replace `scatter_object_output_list[0]` of rank r by object r of the list of rank `src`, by
    default rank 0; r is a rank of the group. Other ranks pass no input list.
    """
    process_group = _joined("scatter_object_list", group)
    if process_group is None:
        return
    default = 0 if src is None and group_src is None else src
    root = rank_in_group(process_group, "root", "src", default, group_src)
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:  # pyright: ignore[reportUnnecessaryIsInstance] - user code is not type-checked
        raise ValueError(
            "Expected argument scatter_object_output_list to be a list of size at least 1."
        )
    is_root, ranks = root == process_group.rank, process_group.world_size
    encoded = list[bytes]()
    if is_root:
        name = "scatter_object_input_list"
        _check_list("scatter_object_list", name, scatter_object_input_list, ranks)
        objects = cast("Sequence[object]", scatter_object_input_list)
        encoded = [encode(each, f"{name}[{index}]") for index, each in enumerate(objects)]
    largest = _int64([max(map(len, encoded), default=0)])
    broadcast(largest, group=process_group, group_src=root)
    width = int(largest.numpy()[0])
    size, own = _int64([0]), _bytes(b"", width)
    counts = [_int64([len(each)]) for each in encoded] if is_root else None
    scatter(size, counts, group=process_group, group_src=root)
    rows = [_bytes(each, width) for each in encoded] if is_root else None
    scatter(own, rows, group=process_group, group_src=root)
    scatter_object_output_list[0] = decode(own.numpy()[: int(size.numpy()[0])].tobytes())


def send_object_list(
    object_list: Sequence[object],
    dst: int | None = None,
    group: Group = None,
    device: object = None,  # noqa: ARG001 - PyTorch's, a rank has one device
    group_dst: int | None = None,
) -> None:
    """Send the objects in the list to rank `dst`, which receives as many with `recv_object_list`.

    The current stream waits for it. `device` has no effect: a rank has one.
    """
    _check_message("send_object_list", object_list, (list, tuple))
    encoded = [encode(each, f"object_list[{index}]") for index, each in enumerate(object_list)]
    content = b"".join(encoded)
    send(_int64([len(each) for each in encoded]), dst, group, group_dst=group_dst)
    send(_bytes(content, len(content)), dst, group, group_dst=group_dst)


def recv_object_list(
    object_list: list[object],
    src: int | None = None,
    group: Group = None,
    device: object = None,  # noqa: ARG001 - PyTorch's, a rank has one device
    group_src: int | None = None,
) -> int:
    """Replace the objects in the list by those that rank `src` sends with `send_object_list`, and
    wait for them; returns the sender's rank. `device` has no effect: a rank has one.
    """
    _check_message("recv_object_list", object_list, (list,))
    sizes = empty(len(object_list), dtype=int64)
    recv(sizes, src, group, group_src=group_src)
    counts = [int(count) for count in sizes.numpy()]
    content = _bytes(b"", sum(counts))
    sender = recv(content, src, group, group_src=group_src)
    _decode_list(object_list, content, counts)
    return sender


def _check_message(function: str, object_list: object, types: tuple[type, ...]) -> None:
    if not isinstance(object_list, types):
        raise TypeError(f"{function}: object_list must be a list, not {type(object_list).__name__}")
    if not object_list:
        raise ValueError(f"{function}: object_list is empty: it has one element per object")
    _check_data(function)


def _decode_list(objects: list[object], content: Tensor, counts: Sequence[int]) -> None:
    arrived, ends = content.numpy(), np.cumsum(counts)
    for index, (end, count) in enumerate(zip(ends, counts, strict=True)):
        objects[index] = decode(arrived[end - count : end].tobytes())


def _check_data(function: str) -> None:
    if not running_rank().data:
        raise RuntimeError(
            f"{function}: a run without data (--no-data) moves no bytes, so objects do not arrive"
        )


def _joined(collective: str, group: Group) -> ProcessGroup | None:
    process_group = member(collective, group, stacklevel=4)
    if process_group is not None:
        _check_data(collective)
    return process_group


def _check_list(collective: str, name: str, objects: object, length: int) -> None:
    if not isinstance(objects, list | tuple):
        raise TypeError(f"{collective}: {name} must be a list, not {type(objects).__name__}")
    count = len(cast("Sequence[object]", objects))
    if count < length or (count != length and length > 1):
        raise ValueError(f"{collective}: {name} has {count} objects, the group has {length} ranks")


def _all_sizes(encoded: bytes, process_group: ProcessGroup) -> list[int]:
    """The bytes of the object of every rank."""
    sizes = empty(process_group.world_size, dtype=int64)
    all_gather_into_tensor(sizes, _int64([len(encoded)]), process_group)
    return [int(size) for size in sizes.numpy()]


def _decode_rows(objects: list[object], whole: Tensor, sizes: Sequence[int]) -> None:
    for index, (row, size) in enumerate(zip(whole.numpy(), sizes, strict=True)):
        objects[index] = decode(row[:size].tobytes())


def _rows(count: int, length: int) -> Tensor:
    return empty(count, length, dtype=uint8)


def _int64(numbers: Sequence[int]) -> Tensor:
    return from_numpy(np.array(numbers, np.int64))


def _bytes(content: bytes, length: int) -> Tensor:
    """A tensor of `length` bytes that begins with `content`."""
    array: Array = np.zeros(length, np.uint8)
    array[: len(content)] = np.frombuffer(content, np.uint8)
    return from_numpy(array)
