"""The collectives on simulated chips, against numpy.

The laws of the model are checked at the end of each run.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
import yaml
from msgspec.structs import replace

from coordinator.verify.check import verify
from examples import sharded_sgd
from runtime import DPPolicy, torch
from runtime.core.config.config_file import default_file
from runtime.core.dtypes import ALL, DType, bfloat16, float64, int8, int32
from runtime.model.addresses import AddressMap
from runtime.model.placement import ONE_PE
from runtime.model.topology import parse_topology
from tests.support.collectives import (
    all_of_them,
    contribution,
    groups_beside_kernels,
    outcome_of_all,
    outcome_of_groups,
)
from tests.support.groups import FOUR_PES
from tests.support.reductions import reduced
from tests.support.topologies import variant_text
from tests.support.world import Simulation, simulate

dist = torch.distributed
ReduceOp = dist.ReduceOp
LONE_PE = variant_text(
    sip__cube_mesh={"w": 1, "h": 1},
    cube__pe_layout__pe_per_corner=1,
    cube__pe_layout__corners=["NW"],
)
COLUMNS = DPPolicy(cube="column_wise", pe="column_wise")
PLACEMENTS = {
    "one PE": ONE_PE,
    "copies": DPPolicy(),
    "columns": COLUMNS,
    "copies of columns": DPPolicy(pe="column_wise"),
}

Worker = Callable[[int], np.ndarray]


def queues(**values: object) -> str:
    """The file that ships, with other queues for the ring."""
    content = yaml.safe_load(default_file("ccl.yaml").read_text())
    content["algorithms"]["ring"].update(values)
    return yaml.safe_dump(content)


def in_group(worker: Worker) -> Worker:
    def program(rank: int) -> np.ndarray:
        dist.init_process_group("ahbm", algorithm="ring")
        return worker(rank)

    return program


def results(
    worker: Worker, sips: int, topology: str = LONE_PE, ccl: str | None = None
) -> list[np.ndarray]:
    """Arrays that the ranks return, in their order."""
    world = simulate(in_group(worker), sips, topology=topology, ccl=ccl)
    return [world.returned[rank] for rank in range(sips)]


@pytest.mark.parametrize(
    ("dtype", "op"),
    [
        (dtype, op)
        for dtype in ALL
        for op in ReduceOp
        # Averages of float64 have more digits than the reference.
        if op.is_defined_for(dtype) and (dtype, op) != (float64, ReduceOp.AVG)
    ],
    ids=lambda each: repr(each) if isinstance(each, DType) else each.value,
)
def test_all_reduce_combines_every_type_with_every_operation_it_has(
    dtype: DType, op: torch.distributed.ReduceOp
) -> None:
    contributions = [contribution(rank, (11,), dtype) for rank in range(3)]

    def worker(rank: int) -> np.ndarray:
        tensor = torch.from_numpy(contributions[rank])
        dist.all_reduce(tensor, op)
        return tensor.numpy()

    np.testing.assert_array_equal(results(worker, 3), [reduced(op, contributions)] * 3)


def test_intercube_averages_over_every_cube_of_every_rank() -> None:
    topology = variant_text(sip__cube_mesh={"w": 2, "h": 1}, cube__pe_layout__pe_per_corner=1)

    def program(rank: int) -> np.ndarray:
        dist.init_process_group("ahbm", algorithm="intercube")
        tensors = [
            torch.from_numpy(contribution(rank, (2, 9)), dp=DPPolicy(cube="row_wise", num_pes=1))
            for _ in range(2)
        ]
        dist.all_reduce(tensors[0], ReduceOp.AVG)
        dist.all_reduce(tensors[1], ReduceOp.MIN)
        return np.array([tensor.numpy() for tensor in tensors])

    rows = np.concatenate([contribution(rank, (2, 9)) for rank in range(3)])
    expected = [
        np.broadcast_to(rows.mean(axis=0, dtype=np.float64).astype(np.float32), (2, 9)),
        np.broadcast_to(rows.min(axis=0), (2, 9)),
    ]
    for values in simulate(program, 3, topology=topology).returned.values():
        np.testing.assert_array_equal(values, expected)


@pytest.mark.parametrize("sips", [1, 2, 3, 5])
@pytest.mark.parametrize("root", [0, -1])
def test_reduce_changes_the_root_alone(sips: int, root: int) -> None:
    root %= sips

    def worker(rank: int) -> np.ndarray:
        tensor = torch.from_numpy(contribution(rank, (13,)))
        dist.reduce(tensor, root, ReduceOp.MAX)
        return tensor.numpy()

    expected = [contribution(rank, (13,)) for rank in range(sips)]
    expected[root] = reduced(ReduceOp.MAX, expected)
    np.testing.assert_array_equal(results(worker, sips), expected)


@pytest.mark.parametrize("sips", [1, 2, 3, 5])
@pytest.mark.parametrize("root", [0, -1])
def test_broadcast_gives_everyone_the_elements_of_the_root(sips: int, root: int) -> None:
    root %= sips

    def worker(rank: int) -> np.ndarray:
        tensor = torch.from_numpy(contribution(rank, (3, 5)))
        dist.broadcast(tensor, root)
        return tensor.numpy()

    np.testing.assert_array_equal(results(worker, sips), [contribution(root, (3, 5))] * sips)


@pytest.mark.parametrize("sips", [1, 2, 3, 5])
def test_all_gather_fills_a_list_in_the_order_of_the_ranks(sips: int) -> None:
    def worker(rank: int) -> np.ndarray:
        placement = DPPolicy(cube="row_wise", pe="column_wise", num_cubes=1)
        gathered = [torch.zeros(3, 4, dp=placement) for _ in range(sips)]
        dist.all_gather(gathered, torch.from_numpy(contribution(rank, (3, 4)), dp=placement))
        return np.array([tensor.numpy() for tensor in gathered])

    expected = [contribution(rank, (3, 4)) for rank in range(sips)]
    np.testing.assert_array_equal(results(worker, sips, FOUR_PES), [expected] * sips)


@pytest.mark.parametrize("sips", [1, 2, 3])
@pytest.mark.parametrize("placement", PLACEMENTS)
def test_all_gather_into_tensor_joins_along_the_first_axis_wherever_the_shards_are(
    sips: int, placement: str
) -> None:
    dp = PLACEMENTS[placement]

    def worker(rank: int) -> np.ndarray:
        whole = torch.zeros(3 * sips, 8, dp=dp)
        dist.all_gather_into_tensor(whole, torch.from_numpy(contribution(rank, (3, 8)), dp=dp))
        return (
            np.array([copy for _, _, copy in whole.copies()]) if dp == DPPolicy() else whole.numpy()
        )

    expected = np.concatenate([contribution(rank, (3, 8)) for rank in range(sips)])
    for values in results(worker, sips, FOUR_PES):
        np.testing.assert_array_equal(values, np.broadcast_to(expected, values.shape))


@pytest.mark.parametrize("shape", [(3, 2, 4), (24,), (4, 6)])
def test_the_output_of_all_gather_may_be_a_stack_or_of_any_shape_on_one_pe(
    shape: tuple[int, ...],
) -> None:
    def worker(rank: int) -> np.ndarray:
        whole = torch.zeros(shape)
        dist.all_gather_into_tensor(whole, torch.from_numpy(contribution(rank, (2, 4))))
        return whole.numpy()

    expected = np.array([contribution(rank, (2, 4)) for rank in range(3)]).reshape(shape)
    np.testing.assert_array_equal(results(worker, 3), [expected] * 3)


def test_a_stack_of_columns_stays_on_their_pes() -> None:
    def worker(rank: int) -> np.ndarray:
        whole = torch.zeros(2, 3, 8, dp=COLUMNS)
        dist.all_gather_into_tensor(whole, torch.from_numpy(contribution(rank, (3, 8)), dp=COLUMNS))
        return whole.numpy()

    expected = np.array([contribution(rank, (3, 8)) for rank in range(2)])
    np.testing.assert_array_equal(results(worker, 2, FOUR_PES), [expected] * 2)


@pytest.mark.parametrize("sips", [1, 2, 3])
@pytest.mark.parametrize("placement", PLACEMENTS)
def test_reduce_scatter_gives_every_rank_its_rows_wherever_the_shards_are(
    sips: int, placement: str
) -> None:
    dp = PLACEMENTS[placement]

    def worker(rank: int) -> np.ndarray:
        part = torch.zeros(3, 8, dp=dp)
        dist.reduce_scatter_tensor(part, torch.from_numpy(contribution(rank, (3 * sips, 8)), dp=dp))
        return part.numpy()

    total = reduced(ReduceOp.SUM, [contribution(rank, (3 * sips, 8)) for rank in range(sips)])
    np.testing.assert_array_equal(results(worker, sips, FOUR_PES), total.reshape(sips, 3, 8))


@pytest.mark.parametrize("op", ReduceOp)
def test_reduce_and_reduce_scatter_have_every_operation(op: torch.distributed.ReduceOp) -> None:
    dtype = int32 if op.is_bitwise else bfloat16
    contributions = [contribution(rank, (21,), dtype) for rank in range(3)]

    def worker(rank: int) -> np.ndarray:
        whole, part = torch.from_numpy(contributions[rank]), torch.zeros(7, dtype=dtype)
        dist.reduce_scatter_tensor(part, whole, op)
        dist.reduce(whole, 1, op)
        return np.concatenate([part.numpy(), whole.numpy()])

    total = reduced(op, contributions)
    wholes = [contributions[0], total, contributions[2]]
    expected = [np.concatenate([total[7 * rank : 7 * rank + 7], wholes[rank]]) for rank in range(3)]
    np.testing.assert_array_equal(results(worker, 3), expected)


@pytest.mark.parametrize("sips", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("placement", ["one PE", "columns"])
def test_all_to_all_sends_part_r_to_rank_r(sips: int, placement: str) -> None:
    dp = PLACEMENTS[placement]

    def worker(rank: int) -> np.ndarray:
        received = torch.zeros(3 * sips, 8, dtype=torch.int8, dp=dp)
        dist.all_to_all_single(
            received, torch.from_numpy(contribution(rank, (3 * sips, 8), int8), dp=dp)
        )
        return received.numpy()

    sent = np.array([contribution(rank, (sips, 3, 8), int8) for rank in range(sips)])
    np.testing.assert_array_equal(
        results(worker, sips, FOUR_PES), sent.swapaxes(0, 1).reshape(sips, 3 * sips, 8)
    )


@pytest.mark.parametrize("sips", [2, 3, 4])
@pytest.mark.parametrize("slots", [1, 4])
def test_collectives_in_flight_together_do_not_interfere(sips: int, slots: int) -> None:
    files = queues(n_slots=slots, slot_size=64)  # 16 elements a slot, 7 to 28 a tensor
    expected = [outcome_of_all(rank, range(sips), 7) for rank in range(sips)]
    np.testing.assert_array_equal(results(all_of_them(range(sips), 7), sips, ccl=files), expected)


@pytest.mark.slow
@pytest.mark.parametrize(("slots", "kind"), [(1, "hbm"), (4, "sram"), (64, "tcm")])
def test_tensors_of_any_size_fit_the_scratch_with_all_queues(slots: int, kind: str) -> None:
    """Three parts of 120 kB: larger than every ring except the last one.

    The scratch of 1 MiB limits the messages of the last ring to fewer bytes.
    """
    files, ranks = queues(n_slots=slots, vc_chunk_size=4096, buffer_kind=kind), range(3)
    expected = [outcome_of_all(rank, ranks, 30_000) for rank in ranks]
    np.testing.assert_array_equal(results(all_of_them(ranks, 30_000), 3, ccl=files), expected)


def test_every_collective_works_in_groups_of_some_ranks_side_by_side() -> None:
    groups = ((1, 2, 4), (0, 3))

    def worker(rank: int) -> np.ndarray:
        joined = {members: dist.new_group(members) for members in groups}
        (found,) = (
            all_of_them(members, 7, group)(rank)
            for members, group in joined.items()
            if rank in members
        )
        return found

    found = results(worker, 5)
    for members in groups:
        np.testing.assert_array_equal(
            [found[rank] for rank in members],
            [outcome_of_all(rank, members, 7) for rank in members],
        )


def test_a_barrier_of_a_group_takes_time_and_waits_for_its_members_only() -> None:
    def program(rank: int) -> tuple[int, int]:
        dist.init_process_group("ahbm", algorithm="ring")
        group = dist.new_group([1, 2])
        torch.zeros({0: 100_000, 1: 10_000, 2: 1}[rank])
        torch.ahbm.synchronize()
        came_ps = torch.ahbm.elapsed_ps()
        if rank:
            dist.barrier(group)
        return came_ps, torch.ahbm.elapsed_ps()

    returned = simulate(program, 3, topology=LONE_PE, data=False).returned
    came_ps, left_ps = zip(returned[1], returned[2], strict=True)
    assert max(came_ps) < min(left_ps)
    assert max(left_ps) < returned[0][0]


def test_groups_that_share_ranks_reduce_while_a_kernel_uses_the_queues_of_the_default_group() -> (
    None
):
    world = simulate(lambda rank: groups_beside_kernels(rank, 40), 4, topology=LONE_PE)
    for rank, found in world.returned.items():
        np.testing.assert_array_equal(found, outcome_of_groups(rank, 40))
    passing = dict(world.of("pe_cpu", "kernel pass on"))
    reducing = [
        (passing[sip], record) for sip, record in world.of("pe_cpu.collective", "kernel all_reduce")
    ]
    assert set(passing) == set(range(4))
    assert any(
        kernel.start_ps < collective.end_ps and collective.start_ps < kernel.end_ps
        for kernel, collective in reducing
    )


@pytest.mark.parametrize(
    "program", ["every collective", pytest.param("groups", marks=pytest.mark.slow)]
)
def test_the_logs_lead_to_the_contents_of_the_memories(program: str) -> None:
    """The executor of `--verify-data` computes the same memories, bit for bit."""
    sips = {"every collective": 3, "groups": 4}[program]
    worker = (
        in_group(all_of_them(range(3), 40))
        if sips == 3
        else partial(groups_beside_kernels, count=40)
    )
    world = simulate(worker, sips, topology=LONE_PE, verify=True)
    verdict = verify(
        world.records,
        world.written,
        world.contents,
        AddressMap(parse_topology(LONE_PE, "topology", sips)),
    )
    assert verdict.problems == ()
    assert verdict.operations > 100


def test_a_run_without_data_takes_the_same_time() -> None:
    with_data, without = (_run_all(data=data) for data in (True, False))
    assert without.records == {
        sip: [replace(record, checksum=0) for record in records]
        for sip, records in with_data.records.items()
    }


def _run_all(*, data: bool) -> Simulation:
    return simulate(in_group(all_of_them(range(2), 20)), 2, topology=LONE_PE, data=data)


@pytest.mark.slow
@pytest.mark.parametrize("pes", [1, 4])
def test_the_example_of_sharded_training_checks_itself(
    pes: int, capsys: pytest.CaptureFixture[str]
) -> None:
    topology = variant_text(sip__cube_mesh={"w": 1, "h": 1}, cube__pe_layout__pe_per_corner=1)
    lines: list[str] = []
    for data in (True, False):
        simulate(lambda rank: sharded_sgd.run(pes), 3, topology=topology, data=data)
        lines.append(capsys.readouterr().out)
    assert lines[0].count(", right, ") == 3
    assert lines[1] == lines[0].replace("right", "not checked")
