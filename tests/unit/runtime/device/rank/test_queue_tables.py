"""Launches with `queues=`: on the chip and in the mock runtime, and the errors of wrong names."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from runtime import DPPolicy, tl, torch
from runtime.ccl.plan import plan_of_one_sip
from runtime.language import mock
from runtime.language.value import Pointer
from runtime.model.topology import parse_topology
from tests.support.topologies import variant_text
from tests.support.world import simulate

TOPOLOGY = variant_text(
    sip__cube_mesh={"w": 2, "h": 2},
    cube__pe_layout__pe_per_corner=1,
    cube__pe_layout__corners=["NW", "NE", "SE"],
)
"""Four cubes with three PEs."""
PES, CUBES = 3, 4


def passed_round(out: Pointer, axis: int) -> None:
    """Every program writes the numbers that arrive as all numbers go once round the ring."""
    own, size = tl.program_id(axis), tl.num_programs(axis)
    value = tl.full((1,), own, out.dtype)
    for step in range(size):
        tl.store(out + own * size + step, value)
        if step < size - 1:
            tl.send("E", value)
            value = tl.recv("W", 1, out.dtype)


def ring_of(order: list[int]) -> list[int]:
    """The numbers that `passed_round` writes: the own one, then those before it in the ring."""
    places = {number: place for place, number in enumerate(order)}
    return [
        order[(places[number] - step) % len(order)]
        for number in range(len(order))
        for step in range(len(order))
    ]


WORLDS: list[tuple[str, int, int, list[int]]] = [
    ("pe_ring", 0, PES, list(range(PES))),
    # Along the snake of a mesh of two by two.
    ("cube_ring", 1, CUBES, [0, 1, 3, 2]),
]


def on_a_rank(program: Callable[[], Any]) -> Any:
    return simulate(lambda rank: program(), 1, topology=TOPOLOGY).returned[0]


@pytest.mark.parametrize(("queues", "axis", "size", "order"), WORLDS)
def test_the_queues_of_a_launch_form_a_ring(
    queues: str, axis: int, size: int, order: list[int]
) -> None:
    policy = (
        DPPolicy(pe="row_wise", num_cubes=1) if axis == 0 else DPPolicy(cube="row_wise", num_pes=1)
    )

    def program() -> list[int]:
        torch.distributed.init_process_group("ahbm")
        out = torch.zeros(size * size, dtype=torch.int32, dp=policy)
        torch.launch("round", passed_round, out, axis, queues=queues)
        return out.numpy().tolist()

    assert on_a_rank(program) == ring_of(order)


@pytest.mark.parametrize(("queues", "axis", "size", "order"), WORLDS)
def test_the_mock_runtime_has_the_same_queues(
    queues: str, axis: int, size: int, order: list[int]
) -> None:
    topology = parse_topology(TOPOLOGY, "topology.yaml", sips=1)
    out = np.zeros(size * size, np.int32)
    mock.launch(
        passed_round,
        out,
        axis,
        pes=size if axis == 0 else 1,
        cubes=size if axis == 1 else 1,
        topology=topology,
        queues=plan_of_one_sip(queues, topology),
    )
    assert out.tolist() == ring_of(order)


@pytest.mark.parametrize(
    ("queues", "error", "message"),
    [
        ("pe_rign", ValueError, "has no such queue table; did you mean 'pe_ring'?"),
        ("tree", ValueError, "of algorithm 'auto', has no such queue table; known: cube_mesh, "),
        (3, TypeError, "launch of 'round' with queues=3: it has to be the name of a queue table"),
    ],
)
def test_a_launch_with_a_wrong_name_is_an_error(
    queues: Any, error: type[Exception], message: str
) -> None:
    def program() -> str:
        torch.distributed.init_process_group("ahbm")
        with pytest.raises(error) as raised:
            torch.launch("round", passed_round, torch.zeros(1), 0, queues=queues)
        return str(raised.value)

    assert message in on_a_rank(program)


def test_a_launch_with_queues_needs_a_process_group() -> None:
    def program() -> None:
        with pytest.raises(ValueError, match=r"call torch\.distributed\.init_process_group first"):
            torch.launch("round", passed_round, torch.zeros(1), 0, queues="pe_ring")

    on_a_rank(program)
