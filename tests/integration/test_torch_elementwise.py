"""Elementwise functions of tensors: wrong arguments are named by their position."""

import numpy as np
import pytest

from kernbench import torch
from tests.support.world import simulate


def test_a_bound_of_clamp_that_is_no_number_is_named():
    def program(rank: int) -> None:
        x = torch.from_numpy(np.float32([-2, 0.5, 3]))
        assert torch.clamp(x, -1, 1).tolist() == [-1, 0.5, 1]
        assert torch.clamp(x, max=1).tolist() == [-2, 0.5, 1]
        with pytest.raises(TypeError, match=r"^clamp\(\): argument 'min' \(position 2\) must be"):
            torch.clamp(x, x, 1)  # pyright: ignore[reportArgumentType]
        with pytest.raises(TypeError, match=r"^clamp\(\): argument 'max' \(position 3\) must be"):
            torch.clamp(x, 0, x)  # pyright: ignore[reportArgumentType]

    simulate(program, 1)
