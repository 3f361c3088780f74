"""Random programs whose collectives overlap with kernels give the results of serial execution."""

from typing import Literal

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from runtime import tl, torch
from tests.support.topologies import variant_text
from tests.support.world import simulate

dist = torch.distributed
TOPOLOGY = variant_text(sip__cube_mesh={"w": 1, "h": 1}, cube__pe_layout__pe_per_corner=1)
SIPS, TENSORS, COUNT = 2, 3, 300
Step = tuple[Literal["add", "reduce", "overlap", "wait", "read"], int, int]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["add", "add", "reduce", "overlap", "overlap", "wait", "read"]),
        st.integers(0, TENSORS - 1),
        st.integers(0, TENSORS - 1),
    ),
    min_size=1,
    max_size=8,
)


def first(rank: int) -> list[np.ndarray]:
    """Small integers: exact in float32, also after eight doublings."""
    return list(np.random.default_rng(rank).integers(-8, 9, (TENSORS, COUNT)).astype(np.float32))


def add(x: tl.Pointer, y: tl.Pointer) -> None:
    """Kernel: y += x."""
    tl.store(y, tl.load(x, COUNT) + tl.load(y, COUNT))


def on_chips(rank: int, steps: list[Step]) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """The values read during the program, and all tensors at its end."""
    dist.init_process_group("ahbm", algorithm="ring")
    tensors, works, seen = (
        [torch.from_numpy(each) for each in first(rank)],
        list[dist.Work](),
        list[np.ndarray](),
    )
    for kind, source, target in steps:
        if kind == "add":
            torch.launch("add", add, tensors[source], tensors[target])
        elif kind == "read":
            seen.append(tensors[source].numpy())
        elif kind == "wait":
            assert all(work.wait() for work in works)
        else:
            work = dist.all_reduce(tensors[source], async_op=kind == "overlap")
            works += [work] if work is not None else []
    return seen, [tensor.numpy() for tensor in tensors]


def in_turn(steps: list[Step]) -> list[tuple[list[np.ndarray], list[np.ndarray]]]:
    """The same values for every rank by serial execution in numpy."""
    tensors, seen = [first(rank) for rank in range(SIPS)], [list[np.ndarray]() for _ in range(SIPS)]
    for kind, source, target in steps:
        total = np.sum([own[source] for own in tensors], axis=0)
        for own, read in zip(tensors, seen, strict=True):
            if kind == "add":
                own[target] = own[target] + own[source]
            elif kind == "read":
                read.append(own[source])
            elif kind != "wait":
                own[source] = total
    return list(zip(seen, tensors, strict=True))


@pytest.mark.slow
@settings(deadline=None, max_examples=12)
@given(STEPS)
@example(
    [
        ("overlap", 0, 0),
        ("add", 1, 2),
        ("add", 0, 1),
        ("overlap", 2, 0),
        ("add", 1, 1),
        ("read", 2, 0),
    ]
)
def test_overlap_changes_no_result(steps: list[Step]) -> None:
    world = simulate(lambda rank: on_chips(rank, steps), SIPS, topology=TOPOLOGY)
    for rank, (read, tensors) in enumerate(in_turn(steps)):
        found_read, found_tensors = world.returned[rank]
        np.testing.assert_array_equal(found_tensors, tensors)
        assert len(found_read) == len(read)
        for found, expected in zip(found_read, read, strict=True):
            np.testing.assert_array_equal(found, expected)
