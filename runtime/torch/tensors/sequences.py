"""Tensors of regular values: `arange`, `linspace` and `eye`, computed on the host and written."""

from math import ceil
from numbers import Real
from typing import Unpack

import numpy as np

from runtime.core.dtypes import DType, float32, int64
from runtime.device.memory.sizes import shape_of
from runtime.device.streams.device import device as Device  # noqa: N812 - PyTorch's class has a small letter
from runtime.model.placement import Placement
from runtime.torch.tensors.creation_options import Keywords, checked_options
from runtime.torch.tensors.tensor import Tensor

_Device = Device | str | int | None


def arange(
    *bounds: float,
    dtype: DType | None = None,
    dp: Placement | None = None,
    device: _Device = None,
    requires_grad: bool = False,
    **named: float,
) -> Tensor:
    """The values from `start` (0) up to `end` without `end`, `step` (1) apart: `arange(end)`,
    `arange(start, end)`, `arange(start, end, step)`.

    There are ceil((end - start) / step) of them, of int64 if all arguments are integers, else of
    float32. `RuntimeError` for a step of 0 or of the wrong sign.
    """
    given: Keywords = {
        "dtype": dtype,
        "dp": dp,
        "device": device,
        "requires_grad": requires_grad,
    }
    options = checked_options("arange", given)
    start, end, step = _bounds(bounds, named)
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if (end - start) * step < 0:
        raise RuntimeError(
            "upper bound and lower bound inconsistent with step sign: "
            f"start {start}, end {end}, step {step}"
        )
    whole = all(isinstance(each, int) for each in (start, end, step))
    element = options.dtype or (int64 if whole else float32)
    # Integers have no rounding: -(-a // b) is their ceiling.
    count = -(-(end - start) // step) if whole else ceil((end - start) / step)
    index = np.arange(int(count), dtype=np.int64 if whole else np.float64)
    new = options.new((int(count),), element)
    return new.copy_((start + index * step).astype(element.numpy))


def linspace(
    start: float,
    end: float,
    steps: int,
    **keywords: Unpack[Keywords],
) -> Tensor:
    """`steps` values from `start` to `end`, both included, at equal distances."""
    options = checked_options("linspace", keywords)
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    element = options.dtype or float32
    return options.new((steps,), element).copy_(np.linspace(start, end, steps))


def eye(
    n: int,
    m: int | None = None,
    **keywords: Unpack[Keywords],
) -> Tensor:
    """A matrix of `n` rows and `m` (by default `n`) columns with ones on the diagonal."""
    options = checked_options("eye", keywords)
    shape = shape_of("eye", (n, n if m is None else m))
    return options.new(shape, float32).copy_(np.eye(shape[0], shape[1]))


def _bounds(given: tuple[object, ...], named: dict[str, float]) -> tuple[float, float, float]:
    names = ("end",) if len(given) == 1 and "end" not in named else ("start", "end", "step")
    chosen: dict[str, object] = dict(zip(names, given, strict=False)) | named
    unknown = [name for name in named if name not in ("start", "end", "step")]
    if unknown or "end" not in chosen or len(given) > 3:
        raise TypeError(
            "arange() received an invalid combination of arguments: it takes (end), (start, end) "
            f"or (start, end, step){f', not {unknown[0]}' if unknown else ''}"
        )
    values: list[float] = []
    for name, default in (("start", 0), ("end", 0), ("step", 1)):
        value = chosen.get(name, default)
        if not isinstance(value, Real):
            problem = f"must be Number, not {type(value).__name__}"
            raise TypeError(f"arange(): argument '{name}' {problem}")
        # Integers of numpy as Python's, whose range is not limited.
        values.append(int(value) if isinstance(value, int | np.integer) else float(value))
    return values[0], values[1], values[2]
