"""Programs whose launches are repeated, and their comparison with one that simulates each."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from runtime import DPPolicy, tl, torch
from runtime.wire.environment import FOLD
from tests.support.runs_left import left
from tests.support.topologies import variant_text
from tests.support.world import Simulation, simulate

MESH: dict[str, Any] = {
    "sip__cube_mesh": {"w": 2, "h": 1},
    "cube__pe_layout__pe_per_corner": 1,
    "cube__pe_layout__corners": ["NW", "NE"],
}
PES, SIZE = 4, 24
ROWS, ONE = DPPolicy(cube="row_wise", pe="row_wise"), DPPolicy(num_cubes=1, num_pes=1)
Program = Callable[[], Sequence[torch.Tensor]]


def own_start(x: tl.Pointer, size: int) -> tl.Pointer:
    return x + (tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)) * size


def tensor(placed: DPPolicy = ROWS, count: int = PES * SIZE, first: float = 0) -> torch.Tensor:
    return torch.from_numpy(np.arange(count, dtype=np.float32) + np.float32(first), dp=placed)


def compared(
    monkeypatch: pytest.MonkeyPatch, program: Program, *, sips: int = 1, **options: Any
) -> Simulation:
    """The run of a program, which leaves the same as one in which every launch is simulated."""

    def returning(_: int) -> list[np.ndarray]:
        results = program()
        return [each.numpy() for each in results] if torch.ahbm.has_data() else []

    options.setdefault("topology", variant_text(**MESH))
    monkeypatch.setenv(FOLD, "0")
    simulated = simulate(returning, sips, **options)
    monkeypatch.setenv(FOLD, "1")
    repeated = simulate(returning, sips, **options)
    assert simulated.done.repeated_kernels == 0
    assert left(repeated) == left(simulated)
    return repeated
