"""A kernel on one PE: what it leaves in its tensors, its time, and its records, which replay."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from coordinator.verify.check import verify
from runtime import DPPolicy, mock, torch
from runtime.core.trace import OpRecord
from runtime.model.addresses import AddressMap
from runtime.model.topology import parse_topology
from tests.support.topologies import variant_text
from tests.support.world import Simulation, simulate

_ONE_SHARD = DPPolicy(num_cubes=1, num_pes=1)


class OnePe(NamedTuple):
    """The tensors after a kernel, its time, and the world that it ran in."""

    arrays: list[np.ndarray]
    kernel_ps: int
    world: Simulation

    def records(self, engine: str, name: str) -> list[OpRecord]:
        """The records of an engine, in the order of their start."""
        found = [record for _, record in self.world.of(engine, name)]
        return sorted(found, key=lambda record: (record.start_ps, record.end_ps))


def one_pe_text(**keys: object) -> str:
    """The topology file of one PE, with changed keys."""
    return variant_text(
        sip__cube_mesh={"w": 1, "h": 1},
        cube__pe_layout__pe_per_corner=1,
        cube__pe_layout__corners=["NW"],
        **keys,
    )


def run_on_one_pe(
    kernel: Callable[..., object],
    given: Sequence[np.ndarray],
    *,
    data: bool = True,
    mocked: bool = True,
    **keys: object,
) -> OnePe:
    """Run `kernel(*pointers)` on tensors with the elements `given`.

    With data, the op log replays to the same memories, and the mock runtime gives the same bits.
    """
    text = one_pe_text(**keys)

    def program(_rank: int) -> tuple[list[np.ndarray], int]:
        tensors = [torch.from_numpy(array.copy(), dp=_ONE_SHARD) for array in given]
        handle = torch.launch("one_pe", kernel, *tensors)
        arrays = [tensor.numpy() for tensor in tensors]
        return arrays, round(handle.pe_exec_ps)

    world = simulate(program, 1, topology=text, data=data, verify=data)
    arrays, kernel_ps = world.returned[0]
    if data:
        topology = parse_topology(text, "topology.yaml", 1)
        verdict = verify(world.records, world.written, world.contents, AddressMap(topology))
        assert verdict.passed, verdict.problems
        expected = [array.copy() for array in given]
        if mocked:
            mock.launch(kernel, *expected, topology=topology)
            for found, array in zip(arrays, expected, strict=True):
                assert found.tobytes() == array.tobytes()
    return OnePe(arrays, kernel_ps, world)
