"""Shapes broadcast as in PyTorch, without its symbolic shapes."""

from typing import Any

import pytest
import torch

from kernbench.torch_backend.runtime.pytorch_api import broadcast_shapes

PYTORCH: Any = torch
"""A function of PyTorch without types."""
Shapes = tuple[tuple[int, ...], ...]


@pytest.mark.parametrize(
    "shapes",
    [
        (),
        ((),),
        ((2, 3),),
        ((2, 1), (3,)),
        ((0, 1), (1, 4), ()),
        ((1,) * 70, (2,)),
    ],
)
def test_shapes_broadcast_as_in_pytorch(shapes: Shapes) -> None:
    shape = broadcast_shapes(*map(torch.Size, shapes))
    assert shape == PYTORCH.broadcast_shapes(*shapes)
    assert isinstance(shape, torch.Size)


@pytest.mark.parametrize("shapes", [((2,), (3,)), ((0,), (2,))])
def test_shapes_are_refused_as_by_pytorch(shapes: Shapes) -> None:
    sizes = [torch.Size(each) for each in shapes]
    with pytest.raises(RuntimeError) as expected:
        PYTORCH.broadcast_shapes(*sizes)
    with pytest.raises(RuntimeError) as raised:
        broadcast_shapes(*sizes)
    assert str(raised.value) == str(expected.value)
