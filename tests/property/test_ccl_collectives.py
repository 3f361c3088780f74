"""Every collective of ring, hypercube and `pairwise` in the mock runtime: right results and bytes.

A deadlock would raise `IpcqDeadlock`. At the end all rings must be empty.
"""

from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.ccl import point_to_point
from runtime.ccl.algorithms import pairwise, recursive_doubling, ring
from runtime.ccl.config import AlgorithmConfig, load_ccl
from runtime.ccl.group import Group
from runtime.ccl.plan import InstallPlan
from runtime.ccl.reduction import ReduceOp
from runtime.core.coordinates import PeCoordinates
from runtime.core.dtypes import ALL, DType
from runtime.language.mock import MockPe, join, run
from runtime.language.value import Pointer
from tests.support.reductions import reduced
from tests.support.topologies import variant

CCL = load_ccl()


class World(NamedTuple):
    """Ranks on a ring with one PE each. Slots have 64 bytes, so small tensors need many."""

    ranks: int
    slots: int
    slot_bytes: int

    def groups(self, name: str = "ring") -> list[Group]:
        algorithm = AlgorithmConfig(
            **(vars(CCL.resolve(name)) | {"n_slots": self.slots, "slot_size": self.slot_bytes})
        )
        return [
            Group(rank, tuple(range(self.ranks)), algorithm, topology(self.ranks))
            for rank in range(self.ranks)
        ]

    def run(
        self,
        kernel: Callable[..., None],
        arguments: Callable[[int, Callable[[np.ndarray], Any]], tuple[Any, ...]],
        algorithm: str = "ring",
    ) -> int:
        """Run `kernel` on every rank with the queues of an algorithm; return the bytes sent.

        `arguments(rank, place)` stores the arrays of a rank in its memory with `place`.
        """
        groups = self.groups(algorithm)
        pes = {
            PeCoordinates(rank, 0, 0): MockPe(
                PeCoordinates(rank, 0, 0), topology=topology(self.ranks)
            )
            for rank in range(self.ranks)
        }
        plan = InstallPlan(groups[0], "ccl.yaml")
        kernels = []
        for rank, pe in enumerate(pes.values()):
            join(pes, plan.of_sip(rank), rank)
            passed = arguments(rank, lambda array, memory=pe.memory: memory.map(array, "array"))
            kernels.append((pe, partial(kernel, *passed)))
        run(kernels)
        assert not any(ring for pe in pes.values() for ring in pe.queues._rings.values())
        return sum(sum(pe.queues.sent.values()) for pe in pes.values())

    def collective(
        self,
        name: str,
        arguments: Callable[[int, Callable[[np.ndarray], Any]], tuple[Any, ...]],
        size: int,
        algorithm: str = "ring",
    ) -> int:
        """Run the kernel of a collective with the arguments of its module; elements have `size`
        bytes.
        """
        groups, module = self.groups(algorithm), MODULES[algorithm]
        return self.run(
            getattr(module, name),
            lambda rank, place: (*arguments(rank, place), *module.arguments(groups[rank], size)),
            algorithm,
        )


@cache
def topology(ranks: int):
    return variant(
        system__sips__count=ranks,
        sip__cube_mesh={"w": 1, "h": 1},
        cube__pe_layout__pe_per_corner=1,
        cube__pe_layout__corners=["NW"],
    )


def by_rank(whole: Pointer, numel: int, ranks: int) -> tuple[Pointer, ...]:
    """The parts of a contiguous tensor."""
    return tuple(whole + rank * numel for rank in range(ranks))


def integers(seed: int, numel: int, dtype: DType) -> np.ndarray:
    """Small integers: sums, and products of a few of them, are exact in every type."""
    # An 8-bit type with two bits of mantissa has the integers up to 8 alone.
    most = 1 if dtype.is_floating_point and dtype.itemsize == 1 else 2
    return np.random.default_rng(seed).integers(-most, most + 1, numel).astype(dtype.numpy)


# From four slots on the messages of a ring stay in their slots, below that they are copied.
worlds = st.builds(World, st.integers(1, 6), st.integers(1, 9), st.just(64))
sizes = st.integers(1, 150)
types = st.sampled_from(ALL)
algorithms = st.sampled_from(["ring", "pairwise"])
small_or_large = st.sampled_from(["ring", "recursive_doubling"])
MODULES = {"ring": ring, "pairwise": pairwise, "recursive_doubling": recursive_doubling}


operations = st.sampled_from(
    [(dtype, op) for dtype in ALL for op in ReduceOp if op.is_defined_for(dtype)]
)


@settings(deadline=None, max_examples=20)
@given(worlds, sizes, operations)
def test_all_reduce_gives_every_rank_the_reduction(
    world: World, numel: int, kind: tuple[DType, ReduceOp]
) -> None:
    dtype, op = kind
    shards = [integers(rank, numel, dtype) for rank in range(world.ranks)]
    expected = reduced(op, shards)
    world.collective(
        "all_reduce", lambda rank, place: (place(shards[rank]), numel, op), dtype.itemsize
    )
    np.testing.assert_array_equal(shards, [expected] * world.ranks)


@settings(deadline=None, max_examples=20)
@given(worlds, sizes, operations, st.integers(0, 5), small_or_large)
def test_reduce_gives_the_reduction_to_the_root_alone(
    world: World, numel: int, kind: tuple[DType, ReduceOp], root: int, algorithm: str
) -> None:
    (dtype, op), root = kind, root % world.ranks
    before = [integers(rank, numel, dtype) for rank in range(world.ranks)]
    shards = [array.copy() for array in before]
    sent = world.collective(
        "reduce",
        lambda rank, place: (place(shards[rank]), numel, op, root),
        dtype.itemsize,
        algorithm,
    )
    np.testing.assert_array_equal(shards.pop(root), reduced(op, before))
    np.testing.assert_array_equal(shards, before[:root] + before[root + 1 :])
    assert sent == (world.ranks - 1) * numel * dtype.itemsize


@settings(deadline=None, max_examples=20)
@given(worlds, sizes, types, st.integers(0, 5), small_or_large)
def test_broadcast_gives_every_rank_the_elements_of_the_root(
    world: World, numel: int, dtype: DType, root: int, algorithm: str
) -> None:
    root %= world.ranks
    shards = [integers(rank, numel, dtype) for rank in range(world.ranks)]
    expected = shards[root].copy()
    sent = world.collective(
        "broadcast",
        lambda rank, place: (place(shards[rank]), numel, root),
        dtype.itemsize,
        algorithm,
    )
    np.testing.assert_array_equal(shards, [expected] * world.ranks)
    assert sent == (world.ranks - 1) * numel * dtype.itemsize


@settings(deadline=None, max_examples=20)
@given(worlds, sizes, types, st.booleans(), small_or_large)
def test_all_gather_gives_every_rank_the_parts_in_the_order_of_the_ranks(
    world: World, numel: int, dtype: DType, into_one: bool, algorithm: str
) -> None:
    ranks = world.ranks
    shards = [integers(rank, numel, dtype) for rank in range(ranks)]
    outputs = [np.zeros((ranks, numel), dtype.numpy) for _ in shards]

    def arguments(rank: int, place: Callable[[np.ndarray], Any]) -> tuple[Any, ...]:
        return place(shards[rank]), numel, by_rank(place(outputs[rank]), numel, ranks)

    name = "all_gather_into_tensor" if into_one else "all_gather"
    sent = world.collective(name, arguments, dtype.itemsize, algorithm)
    np.testing.assert_array_equal(outputs, [shards] * ranks)
    assert sent == ranks * (ranks - 1) * numel * dtype.itemsize


@settings(deadline=None, max_examples=20)
@given(worlds, sizes, operations, small_or_large)
def test_reduce_scatter_gives_every_rank_its_own_part(
    world: World, numel: int, kind: tuple[DType, ReduceOp], algorithm: str
) -> None:
    (dtype, op), ranks = kind, world.ranks
    shards = [integers(rank, ranks * numel, dtype) for rank in range(ranks)]
    outputs = [np.zeros(numel, dtype.numpy) for _ in shards]

    def arguments(rank: int, place: Callable[[np.ndarray], Any]) -> tuple[Any, ...]:
        return by_rank(place(shards[rank]), numel, ranks), numel, op, place(outputs[rank])

    sent = world.collective("reduce_scatter_tensor", arguments, dtype.itemsize, algorithm)
    np.testing.assert_array_equal(np.concatenate(outputs), reduced(op, shards))
    # (p - 1)/p of the input, which has p parts, for each of p ranks. A rank that folds onto another
    # one also sends the part of that rank, which returns its own.
    folded = ranks - (1 << ranks.bit_length() - 1) if algorithm == "recursive_doubling" else 0
    assert sent == (ranks * (ranks - 1) + folded) * numel * dtype.itemsize


@settings(deadline=None, max_examples=20)
@given(worlds, sizes, types, algorithms)
def test_all_to_all_transposes_the_parts(
    world: World, numel: int, dtype: DType, algorithm: str
) -> None:
    ranks = world.ranks
    shards = [integers(rank, ranks * numel, dtype) for rank in range(ranks)]
    outputs = [np.zeros((ranks, numel), dtype.numpy) for _ in shards]

    def arguments(rank: int, place: Callable[[np.ndarray], Any]) -> tuple[Any, ...]:
        return (
            by_rank(place(shards[rank]), numel, ranks),
            numel,
            by_rank(place(outputs[rank]), numel, ranks),
        )

    sent = world.collective("all_to_all_single", arguments, dtype.itemsize, algorithm)
    np.testing.assert_array_equal(
        outputs, np.array(shards).reshape(ranks, ranks, numel).swapaxes(0, 1)
    )
    # On the ring every part takes the shorter direction: the distance of each pair of ranks, times
    # the bytes of a part.
    distances = {
        "ring": lambda a, b: min((a - b) % ranks, (b - a) % ranks),
        "pairwise": lambda a, b: int(a != b),
    }
    hops = sum(distances[algorithm](a, b) for a in range(ranks) for b in range(ranks))
    assert sent == hops * numel * dtype.itemsize


@settings(deadline=None, max_examples=30)
@given(worlds, st.data(), types)
def test_all_to_all_of_parts_of_any_sizes_gives_each_rank_its_parts(
    world: World, data: st.DataObject, dtype: DType
) -> None:
    ranks = world.ranks
    sizes = np.array(data.draw(st.lists(st.integers(0, 90), min_size=ranks**2, max_size=ranks**2)))
    sizes = sizes.reshape(ranks, ranks)
    parts = [
        [integers(ranks * a + b, sizes[a, b], dtype) for b in range(ranks)] for a in range(ranks)
    ]
    outputs = [[np.zeros(sizes[a, b], dtype.numpy) for a in range(ranks)] for b in range(ranks)]

    def arguments(rank: int, place: Callable[[np.ndarray], Any]) -> tuple[Any, ...]:
        sent, received = (
            tuple((place(array), array.size) for array in arrays[rank])
            for arrays in (parts, outputs)
        )
        return sent, received

    sent = world.collective("all_to_all", arguments, dtype.itemsize, "pairwise")
    for a, b in np.ndindex(ranks, ranks):
        np.testing.assert_array_equal(outputs[b][a], parts[a][b])
    assert sent == (sizes.sum() - np.trace(sizes)) * dtype.itemsize


@settings(deadline=None, max_examples=20)
@given(worlds, sizes, types, st.integers(0, 5), algorithms)
def test_gather_gives_the_parts_of_all_ranks_to_the_root(
    world: World, numel: int, dtype: DType, root: int, algorithm: str
) -> None:
    root %= world.ranks
    ranks = world.ranks
    shards = [integers(rank, numel, dtype) for rank in range(ranks)]
    output = np.zeros((ranks, numel), dtype.numpy)

    def arguments(rank: int, place: Callable[[np.ndarray], Any]) -> tuple[Any, ...]:
        outputs = by_rank(place(output), numel, ranks) if rank == root else ()
        return place(shards[rank]), numel, outputs, root

    sent = world.collective("gather", arguments, dtype.itemsize, algorithm)
    np.testing.assert_array_equal(output, shards)
    assert sent == numel * dtype.itemsize * hops_from(root, ranks, algorithm)


@settings(deadline=None, max_examples=20)
@given(worlds, sizes, types, st.integers(0, 5), algorithms)
def test_scatter_gives_every_rank_its_part_of_the_root(
    world: World, numel: int, dtype: DType, root: int, algorithm: str
) -> None:
    root %= world.ranks
    ranks = world.ranks
    whole = integers(0, ranks * numel, dtype)
    outputs = [np.zeros(numel, dtype.numpy) for _ in range(ranks)]

    def arguments(rank: int, place: Callable[[np.ndarray], Any]) -> tuple[Any, ...]:
        inputs = by_rank(place(whole), numel, ranks) if rank == root else ()
        return inputs, numel, place(outputs[rank]), root

    sent = world.collective("scatter", arguments, dtype.itemsize, algorithm)
    np.testing.assert_array_equal(np.concatenate(outputs), whole)
    assert sent == numel * dtype.itemsize * hops_from(root, ranks, algorithm)


def hops_from(root: int, ranks: int, algorithm: str) -> int:
    """Sends of one part per rank between the root and the others."""
    if algorithm == "pairwise":
        return ranks - 1
    return sum(min((rank - root) % ranks, (root - rank) % ranks) for rank in range(ranks))


@settings(deadline=None, max_examples=20)
@given(
    st.builds(World, st.integers(2, 6), st.integers(1, 4), st.just(64)),
    sizes,
    types,
    st.integers(0, 5),
    st.booleans(),
)
def test_a_tensor_forwarded_from_rank_to_rank_reaches_every_rank(
    world: World, numel: int, dtype: DType, first: int, east: bool
) -> None:
    first %= world.ranks
    ahead, behind, step = ("global_E", "global_W", 1) if east else ("global_W", "global_E", -1)
    shards = [integers(rank, numel, dtype) for rank in range(world.ranks)]
    expected = shards[first].copy()

    def relay(shard: Any, rank: int) -> None:
        position = (rank - first) * step % world.ranks
        if position > 0:
            point_to_point.recv(shard, numel, behind)
        if position < world.ranks - 1:
            point_to_point.send(shard, numel, ahead, 64 // dtype.itemsize, 2)

    world.run(relay, lambda rank, place: (place(shards[rank]), rank))
    np.testing.assert_array_equal(shards, [expected] * world.ranks)


@pytest.mark.parametrize("ranks", [1, 2, 3, 6])
def test_no_kernel_exceeds_its_scratch_with_queues_of_any_size(
    ranks: int,
) -> None:
    world, size = World(ranks, 4, 1 << 20), 4
    # Two messages and a rest of every part: the scratch limits the message, since the rings are
    # far larger.
    numel = 2 * ring.arguments(world.groups()[0], size)[1] + 5
    op, shape = ReduceOp.AVG, ranks * numel
    operands: dict[str, Callable[..., tuple[Any, ...]]] = {
        "all_reduce": lambda a, b: (a, shape, op),
        "reduce": lambda a, b: (a, shape, op, 0),
        "broadcast": lambda a, b: (a, shape, 0),
        "all_gather_into_tensor": lambda a, b: (a, numel, by_rank(b, numel, ranks)),
        "reduce_scatter_tensor": lambda a, b: (by_rank(a, numel, ranks), numel, op, b),
        "all_to_all_single": lambda a, b: (
            by_rank(a, numel, ranks),
            numel,
            by_rank(b, numel, ranks),
        ),
    }
    arrays = [(np.ones(shape, np.float32), np.zeros(shape, np.float32)) for _ in range(ranks)]
    for name, of_arrays in operands.items():
        world.collective(
            name, lambda rank, place, of=of_arrays: of(*map(place, arrays[rank])), size
        )
    assert all((a == 1).all() and (b == 1).all() for a, b in arrays)
