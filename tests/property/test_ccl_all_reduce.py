"""All-reduce kernels in the mock runtime: the right sum for every world, the traffic of the algorithm, and no deadlock."""

from functools import cache, partial, reduce
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.ccl.algorithms import intercube, ring
from runtime.ccl.config import AlgorithmConfig, load_ccl
from runtime.ccl.exchange import chunk_bounds
from runtime.ccl.group import Group
from runtime.ccl.plan import InstallPlan
from runtime.ccl.reduction import ReduceOp
from runtime.hardware.topology import Topology
from runtime.language.mock import MockPe, join, run
from runtime.places import Place
from tests.support.topologies import variant

Shards = dict[Place, np.ndarray]
CCL = load_ccl()
# Sums and products of int32 that wrap round do not depend on the order either.
COMBINED = {
    ReduceOp.SUM: np.add, ReduceOp.MAX: np.maximum, ReduceOp.MIN: np.minimum, ReduceOp.PRODUCT: np.multiply,
}  # fmt: skip


@cache
def ring_of(ranks: int, cubes: int = 1) -> Topology:
    """A ring of SIPs with one PE a cube."""
    return variant(
        system__sips__count=ranks, sip__cube_mesh={"w": cubes, "h": 1}, cube__pe_layout__pe_per_corner=1,
        cube__pe_layout__corners=["NW"],
    )  # fmt: skip


@cache
def grid(w: int, h: int, *, cubes: tuple[int, int] = (1, 1), wraps: bool = True) -> Topology:
    """A grid of `w` x `h` SIPs of `cubes` with one PE each."""
    kind = "torus_2d" if wraps else "mesh_2d_no_wrap"
    return variant(
        system__sips__count=w * h, system__sips__topology=kind, system__sips__w=w, system__sips__h=h,
        sip__cube_mesh={"w": cubes[0], "h": cubes[1]}, cube__pe_layout__pe_per_corner=1, cube__pe_layout__corners=["NW"],
    )  # fmt: skip


def config(name: str, slots: int, root: int | None = None) -> AlgorithmConfig:
    """An algorithm of the file with rings of `slots` slots of 64 bytes, so that small tensors need many."""
    fields = vars(CCL.resolve(name)) | {"n_slots": slots, "slot_size": 64, "root_cube": root}
    return AlgorithmConfig(**fields)


def world(topology: Topology, algorithm: AlgorithmConfig, numel: int) -> tuple[dict[Place, MockPe], Shards, list[Group]]:
    """Every PE with its own integers, joined as the install plan says."""
    groups = [Group(rank, topology.sips, algorithm, topology) for rank in range(topology.sips)]
    places = [Place(sip, cube, 0) for sip in range(topology.sips) for cube in range(topology.cubes)]
    pes = {place: MockPe(place, (1, topology.cubes), topology=topology) for place in places}
    shards = {
        place: np.random.default_rng(seed).integers(-100, 100, numel).astype(np.int32) for seed, place in enumerate(places)
    }
    plan = InstallPlan(groups[0], "ccl.yaml")
    for sip in range(topology.sips):
        join(pes, plan.of_sip(sip), sip)
    return pes, shards, groups


def all_reduce(
    module: ModuleType, pes: dict[Place, MockPe], shards: Shards, groups: list[Group], op: ReduceOp = ReduceOp.SUM
) -> None:
    """Run the kernel everywhere, on every shard."""
    kernels = []
    for place, shard in shards.items():
        pointer, rest = pes[place].memory.place(shard, "shard"), module.arguments(groups[place.sip], 4)
        kernels.append((pes[place], partial(module.all_reduce, pointer, shard.size, op, *rest)))
    run(kernels)


@settings(deadline=None, max_examples=12)
@given(st.integers(1, 6), st.integers(1, 400), st.integers(1, 4))
def test_a_ring_gives_everyone_the_sum_of_the_same_shard_elsewhere(ranks: int, numel: int, slots: int) -> None:
    pes, shards, groups = world(ring_of(ranks, cubes=2), config("ring", slots), numel)
    expected = {cube: sum(shard.copy() for at, shard in shards.items() if at.cube == cube) for cube in (0, 1)}
    all_reduce(ring, pes, shards, groups)
    for place, shard in shards.items():
        np.testing.assert_array_equal(shard, expected[place.cube])


@settings(deadline=None, max_examples=20)
@given(st.integers(2, 6), st.integers(1, 300))
def test_a_ring_sends_the_least_that_an_all_reduce_can(ranks: int, numel: int) -> None:
    pes, shards, groups = world(ring_of(ranks), config("ring", 1000), numel)
    all_reduce(ring, pes, shards, groups)
    # Each chunk goes round the ring but for one step, twice: 2 (n - 1) / n of the bytes for each of n ranks.
    assert sum(sum(pe.queues.sent.values()) for pe in pes.values()) == 2 * (ranks - 1) * numel * 4


@pytest.mark.slow
@settings(deadline=None, max_examples=50)
@given(
    sips=st.tuples(st.integers(1, 3), st.integers(1, 3)), cubes=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    wraps=st.booleans(), numel=st.integers(1, 150), slots=st.integers(1, 4), op=st.sampled_from(list(COMBINED)), data=st.data(),
)  # fmt: skip
def test_intercube_gives_every_cube_what_all_cubes_combine_to(sips, cubes, wraps, numel, slots, op, data) -> None:
    root = data.draw(st.none() | st.integers(0, cubes[0] * cubes[1] - 1), label="root cube")
    topology = grid(*sips, cubes=cubes, wraps=wraps)
    pes, shards, groups = world(topology, config("intercube", slots, root), numel)
    expected = reduce(COMBINED[op], (shard.copy() for shard in shards.values()))
    all_reduce(intercube, pes, shards, groups, op)
    for shard in shards.values():
        np.testing.assert_array_equal(shard, expected)


@given(st.integers(0, 1000), st.integers(1, 50))
def test_chunks_cover_everything_once_and_are_of_almost_one_size(numel: int, chunks: int) -> None:
    bounds = chunk_bounds(numel, chunks)
    assert [start for start, _ in bounds] == [0, *(stop for _, stop in bounds[:-1])]
    assert bounds[-1][1] == numel
    assert {stop - start for start, stop in bounds} <= {numel // chunks, numel // chunks + 1}
