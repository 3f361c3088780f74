"""Carries out one elementwise operation of tensors: checks, result type and shape, place, launch.

A kernel is launched on every PE that holds elements of the result. The result lies where the
operand of its shape lies; the kernel loads other operands through their virtual addresses.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NoReturn, TypeVar, cast

import numpy as np

from runtime.core.dtypes import DType, boolean, float32
from runtime.core.requests import PerPe
from runtime.device.kernels.elementwise import Formula, Loaded, elementwise
from runtime.device.launches.device_tensor import DeviceTensor
from runtime.device.launches.launch import launch_on
from runtime.device.launches.partition import placed_partition
from runtime.device.operations.promotion import (
    as_element,
    check_computable,
    inner_type,
    is_number,
    kind,
    result_type,
    type_name,
    wrapped,
)
from runtime.device.rank.rank_state import running_rank
from runtime.language.value import Pointer

T = TypeVar("T", bound=DeviceTensor)
Operand = DeviceTensor | float
_ALIGNMENT_BYTES = 256
"""Scratch that the alignment of the values of a block may take."""
_OF_BOOL = {
    "add": "maximum",
    "mul": "minimum",
    "bitwise_or": "maximum",
    "bitwise_and": "minimum",
    "bitwise_xor": "ne",
}
"""Operations of bool: a sum is `or`, a product is `and`."""


def apply_operation(
    function: str,
    name: str,
    operands: Sequence[object],
    *,
    out: DeviceTensor | None = None,
    floating: bool = False,
    compares: bool = False,
) -> Any:
    """Launch operation `name` of the vector engine, for PyTorch's `function`; returns the result, a
    new tensor or `out`.

    `floating` makes float32 of integers, `compares` gives a bool tensor. Operands and errors are
    those of PyTorch.
    """
    checked = checked_operands(function, operands)
    tensors = list(dict.fromkeys(each for each in checked if isinstance(each, DeviceTensor)))
    shape = broadcast_shape([each.shape for each in tensors])
    dtype = result_type(checked)
    if floating and kind(dtype) < 2:
        dtype = float32
    if compares:
        # Two numbers that are one element are equal: `half == 0.1` compares with a half.
        checked = tuple(as_element(each, dtype) for each in checked)
    inner = inner_type(dtype, checked)
    if inner == boolean and name in _OF_BOOL:
        name = _OF_BOOL[name]
    for each in checked:
        if not isinstance(each, DeviceTensor) and kind(inner) < 2 and int(float(each)) != each:
            raise RuntimeError(f"{function}(): {each} is beyond 2^53: engines take float64 numbers")
    # The second operand of `pow` only promotes.
    used = checked[:2] if name == "mul" else checked[:1] if name in ("", "sqrt") else checked
    formula = Formula(
        name,
        tuple(
            Loaded(_position(tensors, each))
            if isinstance(each, DeviceTensor)
            else wrapped(each, inner)
            for each in used
        ),
        inner,
    )
    result = boolean if compares else dtype
    if out is None:
        out = _placed(tensors, shape, result)
    else:
        _check_target(out, shape, result, tensors)
    launch(function, formula, out, tensors)
    return out


def _placed(tensors: Sequence[DeviceTensor], shape: tuple[int, ...], dtype: DType) -> DeviceTensor:
    """A result which lies where the first operand of its shape lies, which for operands that are
    not flat is the first of those.
    """
    whole = [each for each in tensors if each.shape == shape]
    if not whole:
        return tensors[0].new(shape, dtype)
    return next((each for each in whole if not each.is_flat), whole[0]).like(shape, dtype)


def _position(tensors: Sequence[DeviceTensor], tensor: DeviceTensor) -> int:
    # By identity: `index` would compare elements.
    return next(number for number, each in enumerate(tensors) if each is tensor)


def launch(
    function: str, formula: Formula, out: DeviceTensor, tensors: Sequence[DeviceTensor]
) -> None:
    """Launch a formula of `tensors` on the PEs that hold elements of `out`."""
    parts = placed_partition(function, out, tensors)
    if not parts:
        return
    scratch = running_rank().topology.kernel_scratch_bytes - _ALIGNMENT_BYTES
    nbytes = formula.scratch_bytes([each.dtype for each in tensors], out.dtype)
    pointers = tuple(Pointer(each.address, each.dtype) for each in tensors)
    arguments = (
        formula,
        PerPe(parts),
        scratch // nbytes,
        Pointer(out.address, out.dtype),
        pointers,
    )
    used = list(dict.fromkeys((out, *tensors)))
    launch_on(function, elementwise, arguments, used, list(parts), queue_table="")


def broadcast_shape(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The common shape; `RuntimeError` with PyTorch's text if there is none."""
    whole = shapes[0]
    for shape in shapes[1:]:
        axes = max(len(whole), len(shape))
        a, b = ((1,) * (axes - len(each)) + each for each in (whole, shape))
        for axis in reversed(range(axes)):
            if a[axis] != b[axis] and 1 not in (a[axis], b[axis]):
                raise RuntimeError(
                    f"The size of tensor a ({a[axis]}) must match the size of tensor b ({b[axis]}) "
                    f"at non-singleton dimension {axis}"
                )
        whole = tuple(y if x == 1 else x for x, y in zip(a, b, strict=True))
    return whole


def _check_target(
    out: DeviceTensor, shape: tuple[int, ...], result: DType, tensors: Sequence[DeviceTensor]
) -> None:
    """`RuntimeError` unless `out` can take the result."""
    if out.shape != shape:
        raise RuntimeError(
            f"output with shape {list(out.shape)} doesn't match the broadcast shape {list(shape)}"
        )
    if kind(result) > kind(out.dtype):
        raise RuntimeError(
            f"result type {type_name(result)} can't be cast to the desired output type "
            f"{type_name(out.dtype)}"
        )
    for each in tensors:
        if each.storage is not out.storage:
            continue
        first, second = sorted([(out.address, out.nbytes), (each.address, each.nbytes)])
        if (first != second or out.shape != each.shape) and first[0] + first[1] > second[0]:
            raise RuntimeError(
                "unsupported operation: some elements of the input tensor and the written-to "
                "tensor refer to a single memory location. Please clone() the tensor before "
                "performing the operation."
            )


def checked_operands(function: str, operands: Sequence[object]) -> tuple[Operand, ...]:
    """The operands, which are tensors of one rank and numbers."""
    names = ("input", "other", "alpha")
    for position, each in enumerate(operands, 1):
        if not (isinstance(each, DeviceTensor) or is_number(each)):
            must_be(function, names[position - 1], position, each)
    if not any(isinstance(each, DeviceTensor) for each in operands):
        must_be(function, "input", 1, operands[0])
    sips = {each.shards[0].spec.sip for each in operands if isinstance(each, DeviceTensor)}
    sips.add(running_rank().rank)
    if len(sips) > 1:
        first, second, *_ = sorted(sips)
        raise RuntimeError(
            "Expected all tensors to be on the same device, but found at least two devices, "
            f"ahbm:{first} and ahbm:{second}!"
        )
    for each in operands:
        if isinstance(each, DeviceTensor):
            check_computable(function, each.dtype)
        if isinstance(each, int) and not -(1 << 63) <= each < 1 << 64:
            raise OverflowError(f"int too big to convert: {each} is beyond 64 bits")
    plain = (bool(cast("int", each)) if isinstance(each, np.bool) else each for each in operands)
    return tuple(cast("Iterable[Operand]", plain))


def checked_tensors(function: str, *operands: T) -> list[T]:
    """The operands, which are tensors."""
    for position, each in enumerate(operands, 1):
        if not isinstance(each, DeviceTensor):  # pyright: ignore[reportUnnecessaryIsInstance] - user code is not type-checked
            must_be(function, ("input", "other")[position - 1], position, each)
    return list(operands)


def must_be(
    function: str, name: str, position: int, given: object, kind: str = "Tensor"
) -> NoReturn:
    """Raise the `TypeError` of PyTorch for an argument of another type."""
    advice = "; make a tensor of it with torch.from_numpy" if isinstance(given, np.ndarray) else ""
    given_type = type(cast("object", given)).__name__
    raise TypeError(
        f"{function}(): argument '{name}' (position {position}) must be {kind}, not "
        f"{given_type}{advice}"
    )
