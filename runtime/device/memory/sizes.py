"""Shapes as a script passes them, and the shape that a view of a tensor takes.

The beginnings of the messages are PyTorch's.
"""

from collections.abc import Sequence
from math import prod
from operator import index
from typing import cast


def lengths_of(function: str, size: Sequence[object]) -> tuple[int, ...]:
    """The lengths in `view(2, -1)` and in `view((2, -1))`; `TypeError` for other types than
    integers.
    """
    single = size[0] if len(size) == 1 else None
    lengths = cast("Sequence[object]", single) if isinstance(single, Sequence) else size
    if isinstance(lengths, str) or not all(_is_length(length) for length in lengths):
        wrong = next((length for length in lengths if not _is_length(length)), lengths)
        given = type(lengths if isinstance(lengths, str) else wrong).__name__
        raise TypeError(f"{function}(): argument 'size' must be tuple of ints, not {given}")
    return tuple(index(cast("int", length)) for length in lengths)


def shape_of(function: str, size: Sequence[object]) -> tuple[int, ...]:
    """The shape of a new tensor; `RuntimeError` for a negative length."""
    shape = lengths_of(function, size)
    if any(length < 0 for length in shape):
        raise RuntimeError(f"Trying to create tensor with negative dimension: {shape}")
    return shape


def inferred_shape(lengths: tuple[int, ...], numel: int) -> tuple[int, ...]:
    """The shape with `numel` elements, in which one length may be -1; `RuntimeError` if there is
    none.
    """
    unknown = [axis for axis, length in enumerate(lengths) if length == -1]
    if len(unknown) > 1:
        raise RuntimeError(f"only one dimension can be inferred, not {len(unknown)}: {lengths}")
    negative = next((length for length in lengths if length < -1), None)
    if negative is not None:
        raise RuntimeError(f"invalid shape dimension {negative}")
    known = prod(length for length in lengths if length != -1)
    if not unknown:
        if known != numel:
            raise _invalid(lengths, numel)
        return lengths
    if not known:
        if numel:
            raise _invalid(lengths, numel)
        raise RuntimeError(
            f"cannot reshape tensor of 0 elements into shape {list(lengths)} because the "
            "unspecified dimension size -1 can be any value and is ambiguous"
        )
    if numel % known:
        raise _invalid(lengths, numel)
    return tuple(numel // known if length == -1 else length for length in lengths)


def axis_of(axis: object, axes: int) -> int:
    """`axis` of a tensor with `axes` axes, counted from 0; `IndexError` if there is none."""
    if not _is_length(axis):
        raise TypeError(f"argument 'dim' must be int, not {type(axis).__name__}")
    number, count = index(cast("int", axis)), max(axes, 1)
    if not -count <= number < count:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-count}, {count - 1}], but got "
            f"{number})"
        )
    return number % count


def _invalid(lengths: tuple[int, ...], numel: int) -> RuntimeError:
    return RuntimeError(f"shape '{list(lengths)}' is invalid for input of size {numel}")


def _is_length(length: object) -> bool:
    return hasattr(length, "__index__") and not isinstance(length, bool)
