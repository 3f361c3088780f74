"""The functions of `tl` that exchange values with neighbours, through the queues of a launch."""

from typing import Literal, get_args, overload

from runtime.core.dtypes import DType
from runtime.language.context import BarrierScope, PendingResult, running_kernel
from runtime.language.shapes import checked_dtype, checked_shape, checked_value
from runtime.language.value import Pointer, Shape, Value, check_exists

Space = Literal["tcm", "hbm"]


def send(direction: str, value: Value) -> None:
    """Send `value` to the neighbour in `direction` (`E`, `W`, `N`, `S`, `global_E` ...); waits
    while its receive ring is full.

    A value larger than a slot is sent as several slots.
    """
    running_kernel().send(_direction(direction, "tl.send"), checked_value(value, "tl.send"))


def send_async(direction: str, value: Value) -> PendingResult:
    """Start a send with the arguments of `send`; `wait` returns None when the last byte has left
    the TCM.

    Messages in one direction leave one after the other, in the order of the calls, each as soon as
    the receive ring has room. The elements of `value` are read until then.
    """
    return running_kernel().send_async(
        _direction(direction, "tl.send_async"), checked_value(value, "tl.send_async")
    )


@overload
def recv(
    direction: str | None = None,
    shape: Shape | int | None = None,
    dtype: DType | None = None,
    *,
    dst_addr: Value | None = None,
    dst_space: Space | None = None,
) -> Value: ...
@overload
def recv(
    direction: str | None = None,
    shape: Shape | int | None = None,
    dtype: DType | None = None,
    *,
    dst_addr: Pointer,
    dst_space: Space | None = None,
) -> None: ...
def recv(
    direction: str | None = None,
    shape: Shape | int | None = None,
    dtype: DType | None = None,
    *,
    dst_addr: Value | Pointer | None = None,
    dst_space: Space | None = None,
) -> Value | None:
    """Wait for the next value from `direction`, or from any direction in turn. Shape and type must
    be those of the send.

    The value is copied to scratch, or to `dst_addr`: over a value in TCM (`dst_space` "tcm"), which
    is returned and is the default of shape and type, or to memory at a pointer (`dst_space` "hbm"),
    with None as the result.
    """
    return recv_async(direction, shape, dtype, dst_addr=dst_addr, dst_space=dst_space).wait()


def recv_async(
    direction: str | None = None,
    shape: Shape | int | None = None,
    dtype: DType | None = None,
    *,
    dst_addr: Value | Pointer | None = None,
    dst_space: Space | None = None,
    in_place: bool = False,
) -> PendingResult:
    """Post a receive with the arguments of `recv`; `wait` for the result.

    Receives from one direction complete in the order in which they were posted.

    With `in_place` the value stays in the slots of the receive ring, and no byte passes the port of
    the TCM again: use it as an operand, send it, store it, and then `release` it. A message that
    wraps round the end of the ring, or whose ring is not in TCM, is copied over `dst_addr`, which
    must be a value.
    """
    if direction is not None:
        _direction(direction, "tl.recv")
    target = _target(dst_addr, dst_space)
    if isinstance(target, Value) and shape is None:
        shape = target.shape
    # A pointer and a value have an element type; only a value has a shape, too.
    if target is not None and dtype is None:
        dtype = target.dtype
    if shape is None:
        raise TypeError("tl.recv needs the shape of the value that was sent")
    whole, element = checked_shape(shape), checked_dtype(dtype, "tl.recv")
    if target is not None:
        _check_fit(target, whole, element)
    if in_place and not isinstance(target, Value):
        raise TypeError(
            "tl.recv_async in place needs dst_addr, a value in TCM: a message that wraps round the "
            "end of the ring is copied over it"
        )
    return running_kernel().recv(direction, whole, element, target, in_place=in_place)


def release(value: Value) -> None:
    """Return the slots of a value that was received in place to the sender; the value ends there.

    Credits return in the order of the ring: a slot that is released before an older one returns its
    credit with that one. The end of a kernel releases what it has not released.
    """
    running_kernel().release(checked_value(value, "tl.release"))


def barrier(scope: BarrierScope = "launch") -> None:
    """Wait until all PEs of the launch have called `barrier`, in all its cubes; with the scope
    `"cube"`, those in the cube of this PE.

    What they have stored before is in memory behind it: their loads and stores of the same elements
    are ordered. Two PEs may store to the same element with a barrier of the launch between them; a
    barrier of a cube orders stores and loads alone. An operation in flight that writes to memory is
    a `KernelError`: `wait` for it. A launch with `grid` has no barrier. If a PE ends without the
    call, the others wait forever, and the run ends with the PEs that are missing. `ValueError` for
    another scope.
    """
    if scope not in get_args(BarrierScope):
        raise ValueError(f"tl.barrier: the scope is 'launch' or 'cube', not {scope!r}")
    running_kernel().barrier(scope)


def _direction(direction: object, operation: str) -> str:
    if isinstance(direction, str):
        return direction
    raise TypeError(
        f"{operation} takes a direction such as 'E', not {type(direction).__name__} {direction!r}"
    )


def _target(dst_addr: object, dst_space: object) -> Value | Pointer | None:
    if dst_addr is None:
        if dst_space is not None:
            raise TypeError(
                f"tl.recv with dst_space {dst_space!r} needs dst_addr, the target of the copy"
            )
        return None
    if isinstance(dst_addr, Value):
        check_exists(dst_addr, "tl.recv")
    if not isinstance(dst_addr, Value | Pointer):
        given = f"{type(dst_addr).__name__} {dst_addr!r}"
        raise TypeError(f"tl.recv: dst_addr is a value in TCM or a pointer to memory, not {given}")
    space, kind = (
        ("tcm", "value in TCM") if isinstance(dst_addr, Value) else ("hbm", "pointer to memory")
    )
    if dst_space not in (None, space):
        raise ValueError(
            f"tl.recv: dst_addr is a {kind}, so dst_space is {space!r}, not {dst_space!r}"
        )
    return dst_addr


def _check_fit(target: Value | Pointer, shape: Shape, dtype: DType) -> None:
    if target.dtype != dtype:
        raise TypeError(
            f"tl.recv of {dtype.name} to elements of {target.dtype.name}; they must be equal"
        )
    if isinstance(target, Value) and target.shape != shape:
        raise ValueError(
            f"tl.recv of shape {shape} over a value of shape {target.shape}; they must be equal"
        )
