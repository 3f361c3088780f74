"""Collectives with `async_op=True` beside kernels: overlap, waits, and two streams on a PE."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from runtime import DPPolicy, tl, torch
from runtime.core.device import Handle
from runtime.core.errors import IpcqDeadlock, KernelError
from runtime.core.requests import KernelLaunchMsg
from runtime.core.trace import OpRecord
from runtime.device.collectives.work import Work
from runtime.model.addresses import AddressMap
from runtime.model.allocation import collective_scratch_offset, kernel_scratch_offset
from runtime.model.topology import parse_topology
from runtime.torch.tensors.tensor import Tensor
from sip_node.chip.bounds.command_bounds import CommandBounds
from sip_node.chip.bounds.send_bounds import SendBounds
from tests.support.lps import reports_of
from tests.support.topologies import variant_text
from tests.support.world import Simulation, simulate

dist = torch.distributed
TOPOLOGY = variant_text(
    sip__cube_mesh={"w": 1, "h": 1},
    cube__pe_layout__pe_per_corner=1,
    cube__pe_layout__corners=["NW", "NE"],
)
TWO_PES = DPPolicy(pe="column_wise", num_cubes=1, num_pes=2)
COUNT = 1024
"""Elements of a tensor, which two PEs hold."""


def run(program: Callable[[int], Any], sips: int = 2, **options: Any) -> Simulation:
    def joined(rank: int) -> Any:
        dist.init_process_group("ahbm", algorithm="ring")
        return program(rank)

    return simulate(joined, sips, topology=TOPOLOGY, **options)


def drawn(rank: int, seed: int = 0) -> np.ndarray:
    """Small integers: their sums are exact in float32, in any order."""
    return np.random.default_rng([rank, seed]).integers(-8, 9, COUNT).astype(np.float32)


def summed(sips: int, seed: int = 0) -> np.ndarray:
    return np.sum([drawn(rank, seed) for rank in range(sips)], axis=0)


def square(x: tl.Pointer, y: tl.Pointer) -> None:
    """Kernel: y = x * x, for the half that this PE holds, a quarter of it at a time."""
    part = COUNT // 8
    for step in range(4):
        start = (tl.program_id(0) * 4 + step) * part
        with tl.scratch():
            values = tl.load(x + start, part)
            tl.store(y + start, values * values)


def reduced(tensor: Tensor) -> Work:
    """An all-reduce that overlaps with what follows."""
    work = dist.all_reduce(tensor, async_op=True)
    assert work is not None
    return work


def steps(
    *, collective: str = "", kernel: bool = False
) -> Callable[[int], tuple[int, np.ndarray, np.ndarray]]:
    """All-reduce one tensor and square another; return the time in ps of both, and both results."""

    def program(rank: int) -> tuple[int, np.ndarray, np.ndarray]:
        tensor, x, y = (torch.from_numpy(drawn(rank, seed), dp=TWO_PES) for seed in range(3))
        began_ps = torch.ahbm.elapsed_ps()
        if collective:
            dist.all_reduce(tensor, async_op=collective == "async")
        if kernel:
            torch.launch("square", square, x, y)
        torch.ahbm.synchronize()
        return torch.ahbm.elapsed_ps() - began_ps, tensor.numpy(), y.numpy()

    return program


def took_ps(world: Simulation) -> int:
    return max(result[0] for result in world.returned.values())


def check(world: Simulation) -> None:
    for rank, (_, tensor, y) in world.returned.items():
        np.testing.assert_array_equal(tensor, summed(len(world.returned)))
        np.testing.assert_array_equal(y, drawn(rank, 1) ** 2)


@pytest.mark.slow
def test_a_kernel_runs_while_an_asynchronous_collective_does() -> None:
    alone = [took_ps(run(steps(collective="async"))), took_ps(run(steps(kernel=True)))]
    world = run(steps(collective="async", kernel=True))
    check(world)
    assert max(alone) <= took_ps(world) < sum(alone)


@pytest.mark.slow
def test_a_kernel_behind_a_synchronous_collective_is_on_its_way_while_that_runs() -> None:
    alone = [took_ps(run(steps(collective="sync"))), took_ps(run(steps(kernel=True)))]
    world = run(steps(collective="sync", kernel=True))
    check(world)
    # The kernel and the mapping of its tensors do not start later; their way from the host to the
    # IO_CPU and the answer of the collective, 110 and 100 ns, are not added.
    assert sum(alone) - 3 * 210_000 < took_ps(world) < sum(alone) - 210_000


def test_a_collective_alone_takes_the_same_time_with_and_without_async_op() -> None:
    assert took_ps(run(steps(collective="async"))) == took_ps(run(steps(collective="sync")))


def product(x: tl.Pointer, y: tl.Pointer) -> None:
    """Kernel: y = x @ x, which keeps the matrix engine busy."""
    values = tl.load(x, (64, 64))
    for _ in range(4):
        tl.store(y, tl.dot(values, values))


@pytest.mark.slow
@pytest.mark.parametrize("sips_of_lp", [((0, 1), (2,)), ((0,), (1,), (2,))])
def test_overlapped_runs_have_one_digest_for_every_partition_into_lps(
    sips_of_lp: tuple[tuple[int, ...], ...],
) -> None:
    def program(rank: int) -> np.ndarray:
        dist.init_process_group("ahbm", algorithm="ring")
        pe_0 = DPPolicy(num_cubes=1, num_pes=1)
        tensor = torch.from_numpy(drawn(rank), dp=pe_0)
        x, y = torch.ones(64, 64, dp=pe_0), torch.zeros(64, 64, dp=pe_0)
        torch.launch("product", product, x, y)
        work = dist.all_reduce(tensor, async_op=True)
        torch.launch("product", product, x, y)
        assert work is not None
        work.wait()
        return tensor.numpy()

    alone = simulate(program, 3, topology=TOPOLOGY)
    for tensor in alone.returned.values():
        np.testing.assert_array_equal(tensor, summed(3))
    assert (
        tuple(report.digest for report in reports_of(program, sips_of_lp, TOPOLOGY, seed=5))
        == alone.digests
    )


def test_the_promise_of_one_stream_does_not_hold_for_the_other() -> None:
    pe, to_port_ps = (0, 0), 10
    seen = SendBounds({pe: to_port_ps}, CommandBounds(), answers=False)
    seen.reaches(pe, "world/ring", (1,))
    for number, call in enumerate(("all_reduce", "")):
        launch = KernelLaunchMsg("kernel", int, (), (pe,), "world/ring", call)
        seen.commands.submitted(number, number, (), 0, [launch])
        seen.stamped(number, launch, 0)
    seen.waiting(pe, "kernels", lambda: 400, sends=False)
    assert seen.earliest_send_ps(100)[1] == {1: 100 + to_port_ps}
    seen.ended(pe, "collectives")
    assert seen.earliest_send_ps(100)[1] == {1: 400 + to_port_ps}


def test_a_kernel_on_the_tensor_that_is_reduced_waits_for_the_collective() -> None:
    def program(rank: int) -> tuple[Work, Handle, np.ndarray]:
        tensor, y = torch.from_numpy(drawn(rank), dp=TWO_PES), torch.zeros(COUNT, dp=TWO_PES)
        work = reduced(tensor)
        handle = torch.launch("square", square, tensor, y)
        return work, handle, y.numpy()

    for work, handle, y in run(program).returned.values():
        assert handle.released_ps >= work.handle.device_done_ps > 0
        np.testing.assert_array_equal(y, summed(2) ** 2)


def test_reading_a_tensor_waits_for_its_collective_and_reading_another_one_does_not() -> None:
    def program(rank: int) -> tuple[bool, bool, np.ndarray]:
        tensor, other = torch.from_numpy(drawn(rank), dp=TWO_PES), torch.zeros(2)
        work = reduced(tensor)
        other.numpy()
        before = work.is_completed()
        values = tensor.numpy()
        return before, work.is_completed(), values

    for before, after, values in run(program).returned.values():
        assert (before, after) == (False, True)
        np.testing.assert_array_equal(values, summed(2))


def test_writing_a_tensor_waits_for_its_collective() -> None:
    def program(rank: int) -> tuple[np.ndarray, np.ndarray]:
        tensor, other = (
            torch.from_numpy(drawn(rank), dp=TWO_PES),
            torch.from_numpy(drawn(rank, 1), dp=TWO_PES),
        )
        work = reduced(tensor)
        tensor.copy_(other)
        assert not work.is_completed()
        return tensor.numpy(), drawn(rank, 1)

    for found, expected in run(program).returned.values():
        np.testing.assert_array_equal(found, expected)


def test_a_kernel_after_a_synchronous_collective_begins_when_that_is_complete() -> None:
    world = run(steps(collective="sync", kernel=True))
    reduces, squares = kernels(world, "pe_cpu.collective"), kernels(world, "pe_cpu")
    assert [record.name for record in (*reduces, *squares)] == ["kernel all_reduce.ring"] * 4 + [
        "kernel square"
    ] * 4
    assert min(record.start_ps for record in squares) > max(record.end_ps for record in reduces)


def kernels(world: Simulation, component: str) -> list[OpRecord]:
    return [record for _, record in world.of(component)]


def test_collectives_of_a_rank_run_one_after_the_other() -> None:
    def program(rank: int) -> list[Work]:
        works = [reduced(torch.from_numpy(drawn(rank, seed), dp=TWO_PES)) for seed in range(3)]
        torch.ahbm.synchronize()
        return works

    for works in run(program).returned.values():
        times = [(work.handle.released_ps, work.handle.device_done_ps) for work in works]
        assert all(done_ps <= begun_ps for (_, done_ps), (begun_ps, _) in pairwise(times))
        assert all(work.is_completed() for work in works)


def test_a_collective_waits_for_the_kernels_before_it() -> None:
    def program(rank: int) -> tuple[Handle, Work]:
        tensor, x, y = (torch.from_numpy(drawn(rank, seed), dp=TWO_PES) for seed in range(3))
        handle = torch.launch("square", square, x, y)
        work = reduced(tensor)
        torch.ahbm.synchronize()
        return handle, work

    for handle, work in run(program).returned.values():
        assert work.handle.released_ps >= handle.device_done_ps > 0


def test_wait_makes_the_stream_wait_and_not_the_rank() -> None:
    def program(rank: int) -> tuple[int, int, Work, list[Handle]]:
        x, y = torch.from_numpy(drawn(rank, 1), dp=TWO_PES), torch.zeros(COUNT, dp=TWO_PES)
        torch.launch("square", square, x, y)
        torch.ahbm.synchronize()
        work, began_ps = reduced(torch.from_numpy(drawn(rank), dp=TWO_PES)), torch.ahbm.elapsed_ps()
        beside = torch.launch("square", square, x, y)
        assert work.wait()
        waited_ps = torch.ahbm.elapsed_ps() - began_ps
        behind = torch.launch("square", square, x, y)
        torch.ahbm.synchronize()
        return waited_ps, torch.ahbm.elapsed_ps() - began_ps, work, [beside, behind]

    for waited_ps, took_ps_, work, (beside, behind) in run(program).returned.values():
        assert waited_ps == 0 < took_ps_
        assert beside.released_ps < work.handle.device_done_ps <= behind.released_ps


@pytest.mark.parametrize("waits", [False, True], ids=["the end of the program", "synchronize"])
def test_everything_is_complete_at_the_end(waits: bool) -> None:
    def program(rank: int) -> tuple[Work, bool]:
        work = reduced(torch.from_numpy(drawn(rank), dp=TWO_PES))
        torch.zeros(2)
        if waits:
            torch.ahbm.synchronize()
        return work, work.is_completed()

    for work, there in run(program).returned.values():
        assert there == waits
        assert work.is_completed()


def test_a_tensor_that_the_program_drops_keeps_its_memory_until_its_collective_is_complete() -> (
    None
):
    def program(rank: int) -> tuple[int, list[int]]:
        tensor = torch.from_numpy(drawn(rank), dp=TWO_PES)
        address = tensor.shards[0].address
        work = reduced(tensor)
        del tensor
        addresses = [torch.zeros(COUNT, dp=TWO_PES).shards[0].address]
        torch.ahbm.synchronize()
        assert work.is_completed()
        addresses.append(torch.zeros(COUNT, dp=TWO_PES).shards[0].address)
        return address, addresses

    for address, (during, after) in run(program).returned.values():
        assert during != address == after


def test_the_streams_of_a_pe_have_separate_scratch() -> None:
    topology = parse_topology(TOPOLOGY, "topology.yaml")
    collectives, kernels = collective_scratch_offset(topology), kernel_scratch_offset(topology)
    assert kernels - collectives == topology.collective_scratch_bytes == 1 << 20
    used: dict[str, set[int]] = {"add": set(), "mul": set()}
    for sip, record in run(steps(collective="async", kernel=True)).of("pe_math"):
        offset = record.address - AddressMap(topology).pe_tcm_addr(
            sip, record.cube, record.pe, collectives
        )
        used[record.name].add(offset // topology.collective_scratch_bytes)
    assert used == {"add": {0}, "mul": {1}}


def misuse(operation: Callable[[], object], *, waits: bool) -> Callable[[int], None]:
    """A kernel that uses the queues of a group during, or after, an asynchronous collective."""

    def kernel(_at: tl.Pointer) -> None:
        operation()

    def program(rank: int) -> None:
        work = reduced(torch.zeros(8000))
        if waits:
            work.wait()
        torch.launch("k", kernel, torch.empty(2))

    return program


@pytest.mark.parametrize(
    ("operation", "name"),
    [
        (lambda: tl.send("global_E", tl.zeros((1,), tl.float32)), "send global_E"),
        (lambda: tl.recv("global_W", 1, tl.float32), "recv global_W"),
        (lambda: tl.recv(None, 1, tl.float32), "recv from any direction"),
    ],
    ids=["send", "recv", "recv any"],
)
def test_queues_that_a_collective_uses_are_refused_to_kernels(
    operation: Callable[[], object], name: str
) -> None:
    with pytest.raises(KernelError) as raised:
        run(misuse(operation, waits=False))
    assert raised.value.kernel == "k"
    assert raised.value.problem == (
        f"{name}: the queues 'world/ring' are in use by all_reduce.ring, which was "
        f"called with async_op=True: "
        "wait() for it first"
    )


def exchange() -> None:
    tl.send("global_E", tl.zeros((1,), tl.float32))
    tl.recv("global_W", 1, tl.float32)


def test_queues_are_free_again_when_the_collective_is_complete() -> None:
    found = kernels(run(misuse(exchange, waits=True)), "pe_cpu")
    assert len([each for each in found if each.name != "kernel fill_"]) == 2


def test_a_deadlock_of_both_streams_of_a_pe_names_both_waits() -> None:
    """Rank 1 never joins the all-reduce of its group; rank 2 never sends to rank 0."""

    def listen(_at: tl.Pointer) -> None:
        tl.recv("global_W", 1, tl.float32)

    def program(rank: int) -> None:
        group = dist.new_group([0, 1])
        if rank == 0:
            dist.all_reduce(torch.ones(4), group=group, async_op=True)
            torch.launch("listen", listen, torch.empty(2))

    with pytest.raises(IpcqDeadlock) as raised:
        run(program, 3)
    error = raised.value
    assert error.waits[:2] == (
        (
            "chain: sip 0 cube 0 pe 0 recv global_W -> sip 2 cube 0 pe 0 runs no kernel: "
            "rank 2 has finished its program"
        ),
        (
            "chain: sip 0 cube 0 pe 0 recv global_W -> sip 1 cube 0 pe 0 runs no kernel: "
            "rank 1 has finished its program"
        ),
    )
    assert [line.partition(" recv")[0] for line in error.pes] == [
        "sip 0 cube 0 pe 0: kernel 'listen'",
        "sip 0 cube 0 pe 0: kernel 'all_reduce.ring'",
    ]
    assert error.pes[1].endswith(
        "in group1 of ranks 0 to 1 #1: all_reduce(f32 (4,) on cube 0 pe 0, op sum) by ring"
    )
