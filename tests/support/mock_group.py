"""All ranks of a process group in the mock runtime, and the right result of their all-reduce."""

from collections.abc import Sequence
from functools import cache, partial
from importlib import import_module
from typing import Any

import numpy as np

from runtime.ccl.config import AlgorithmConfig, load_ccl
from runtime.ccl.group import Group
from runtime.ccl.plan import InstallPlan
from runtime.ccl.reduction import ReduceOp
from runtime.core.coordinates import PeCoordinates
from runtime.language.mock import MockPe, join, run
from runtime.model.topology import Topology
from tests.support.reductions import Kind, assert_combined, drawn
from tests.support.topologies import variant

CCL = load_ccl()
Shards = dict[PeCoordinates, np.ndarray]


@cache
def system(
    ranks: int,
    *,
    cubes: tuple[int, int] = (1, 1),
    pes: int = 1,
    grid: tuple[int, int] | None = None,
    wraps: bool = True,
) -> Topology:
    """`ranks` SIPs of `cubes` (columns, rows) with 1 to 4 PEs each.

    The SIPs form a ring, or a `grid` (columns, rows).
    """
    kind = "ring_1d" if grid is None else "torus_2d" if wraps else "mesh_2d_no_wrap"
    w, h = grid or (None, None)
    return variant(
        system__sips__count=ranks,
        system__sips__topology=kind,
        system__sips__w=w,
        system__sips__h=h,
        sip__cube_mesh={"w": cubes[0], "h": cubes[1]},
        cube__pe_layout__pe_per_corner=1,
        cube__pe_layout__corners=["NW", "NE", "SW", "SE"][:pes],
    )


class MockGroup:
    """The group of all SIPs of a topology; `config` overrides keys of `ccl.yaml`.

    Slots have 64 bytes, so that a small tensor needs many of them.
    """

    def __init__(
        self,
        algorithm: str,
        topology: Topology,
        /,
        *,
        n_slots: int = 4,
        slot_size: int = 64,
        **config: Any,
    ) -> None:
        fields = (
            vars(CCL.resolve(algorithm)) | {"n_slots": n_slots, "slot_size": slot_size} | config
        )
        resolved, sips = AlgorithmConfig(**fields), tuple(range(topology.sips))
        self.topology, self.module = topology, import_module(resolved.module)
        self.groups = [Group(rank, sips, resolved, topology) for rank in sips]
        self.plan = InstallPlan(self.groups[0], "ccl.yaml")
        self.coordinates = [
            PeCoordinates(sip, *pe) for sip in sips for pe in self.plan.mapping.participants
        ]
        self.sent: dict[PeCoordinates, dict[str, int]] = {}

    def shards(self, kind: Kind, numel: int, seed: int = 0) -> Shards:
        """Random contributions, one a PE."""
        return dict(
            zip(self.coordinates, drawn(kind, numel, len(self.coordinates), seed), strict=True)
        )

    def all_reduce(self, shards: Shards, op: ReduceOp, order: Sequence[int] | None = None) -> None:
        """Run the kernel everywhere, on every shard; in each round PEs take turns in `order`.

        Afterwards `sent` has the bytes each PE sent in each direction, and all rings are empty.
        """
        topology = self.topology
        programs = (topology.pes_per_cube, topology.cubes)
        pes = {at: MockPe(at, programs, topology=topology) for at in self.coordinates}
        for rank in range(topology.sips):
            join(pes, self.plan.of_sip(rank), rank)
        kernels = []
        for at, shard in shards.items():
            pointer = pes[at].memory.map(shard, "shard")
            rest = self.module.arguments(self.groups[at.sip], shard.itemsize)
            kernels.append(
                (pes[at], partial(self.module.all_reduce, pointer, shard.size, op, *rest))
            )
        run(kernels if order is None else [kernels[index] for index in order])
        assert not any(ring for pe in pes.values() for ring in pe.queues._rings.values())
        self.sent = {at: dict(pe.queues.sent) for at, pe in pes.items()}

    def sent_by(self, rank: int) -> int:
        """The bytes that all PEs of a rank sent."""
        return sum(sum(sent.values()) for at, sent in self.sent.items() if at.sip == rank)


def check_all_reduce(
    group: MockGroup, kind: Kind, numel: int, seed: int = 0, *, by_coordinates: bool = True
) -> None:
    """Run an all-reduce of random shards, in a random order of turns, and compare with numpy.

    The sum is over the shards at equal coordinates of all ranks (`by_coordinates`), or over all
    shards.
    """
    shards = group.shards(kind, numel, seed)
    given = {at: shard.copy() for at, shard in shards.items()}
    group.all_reduce(shards, kind[1], np.random.default_rng(seed).permutation(len(shards)).tolist())
    for pe in group.plan.mapping.participants if by_coordinates else [None]:
        together = [at for at in shards if pe is None or (at.cube, at.pe) == pe]
        assert_combined(kind, [given[at] for at in together], [shards[at] for at in together])
