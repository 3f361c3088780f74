"""Objects left to Python's memory management by a run: no cycles, no arrays without data, and no
chip of a run that has failed.
"""

import gc
import tracemalloc
from collections.abc import Callable

import pytest

from kernbench.simulation import Simulation, simulate
from runtime import DPPolicy, tl, torch
from runtime.core.errors import CollectiveMismatchError, IpcqDeadlock
from sip_node.chip.chip import Chip
from tests.support.own_garbage import only_own_garbage
from tests.support.topologies import variant_text

dist = torch.distributed
SMALL = variant_text(sip__cube_mesh={"w": 1, "h": 1}, cube__pe_layout__pe_per_corner=1)


def scale(x: tl.Pointer, numel: int) -> None:
    own = x + tl.program_id(0) * numel
    with tl.scratch():
        tl.store(own, tl.load(own, (numel,)) * 2.0)


def program(calls: int) -> Callable[[int], None]:
    def main(_: int) -> None:
        dist.init_process_group("ahbm")
        rows = DPPolicy(pe="row_wise", num_cubes=1)
        x = torch.zeros((4096,), dtype=torch.float16, dp=rows)
        a = torch.zeros((64, 64), dtype=torch.float16)
        for _ in range(calls):
            dist.all_reduce(x)
            torch.launch("scale", scale, x, 1024)
            a = a @ a
            x.numpy()
        torch.ahbm.synchronize()

    return main


def garbage_of(calls: int) -> tuple[int, Simulation]:
    """The number of objects that only the collector finds after a run with this number of calls."""
    with only_own_garbage():
        world = simulate(program(calls), 2, topology=SMALL)
        return gc.collect(), world


@pytest.mark.slow
def test_no_command_kernel_or_slot_leaves_a_reference_cycle() -> None:
    # In a run, nothing collects cycles: what is in one stays for as long as the run.
    garbage_of(1)
    (few, _), (many, world) = garbage_of(1), garbage_of(4)
    assert few == many
    assert len(world.of("pe_dma", "ipcq_send")) > 4


def test_a_run_without_data_makes_no_arrays_of_the_size_of_a_tensor() -> None:
    numel = 1 << 22

    def main(_: int) -> int:
        torch.zeros((8,), dtype=torch.float32)
        torch.ahbm.synchronize()
        tracemalloc.start()
        torch.zeros((numel,), dtype=torch.float64, dp=DPPolicy(num_cubes=1, num_pes=1))
        _, peak_bytes = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return peak_bytes

    assert simulate(main, 1, topology=SMALL, data=False).returned[0] < numel


def receive(_: tl.Pointer) -> None:
    tl.recv("global_W", 1, tl.float32)


def launched(kernel: Callable[[tl.Pointer], None], pes: int = 1) -> None:
    dist.init_process_group("ahbm")
    torch.launch("waits", kernel, torch.empty(pes, dp=DPPolicy(num_cubes=1, num_pes=pes)))


def kernel_raises(rank: int) -> None:
    def kernel(at: tl.Pointer) -> None:
        if rank == 0 and tl.program_id(0) == 1:
            raise LookupError("of a kernel")
        receive(at)

    launched(kernel, pes=2)
    torch.ahbm.synchronize()


def host_raises(rank: int) -> None:
    launched(receive)
    if rank == 1:
        raise LookupError("of a rank")
    torch.ahbm.synchronize()


def nobody_sends(_: int) -> None:
    launched(receive)


def launch_is_refused(_: int) -> None:
    launched(receive)
    torch.launch("refused", receive, 1, 2)


def collective_differs(rank: int) -> None:
    dist.init_process_group("ahbm")
    dist.all_reduce(torch.ones(4 + rank))


def lists_of_commands_wait(rank: int) -> None:
    dist.init_process_group("ahbm")
    for _ in range(4 - rank):
        dist.all_reduce(torch.ones(4))
    if rank == 1:
        raise LookupError("of a rank")
    torch.ahbm.synchronize()


@pytest.mark.parametrize(
    ("program", "error"),
    [
        (kernel_raises, LookupError),
        (host_raises, LookupError),
        (nobody_sends, IpcqDeadlock),
        (launch_is_refused, ValueError),
        (collective_differs, CollectiveMismatchError),
        (lists_of_commands_wait, LookupError),
    ],
)
def test_a_run_that_fails_is_released_with_its_error(
    program: Callable[[int], None], error: type[Exception]
) -> None:
    with only_own_garbage():
        with pytest.raises(error):
            simulate(program, 2, topology=SMALL, record=program is kernel_raises)
        gc.collect()
        assert not [each for each in gc.get_objects() if isinstance(each, Chip)]


def test_code_that_runs_when_a_failed_run_is_released_simulates_nothing(
    capfd: pytest.CaptureFixture[str],
) -> None:
    ends = list[str]()

    def kernel(at: tl.Pointer) -> None:
        try:
            receive(at)
        finally:
            ends.append("kernel")
            tl.device_print("released")
            tl.store(at, 1.0)
            ends.append("stored")

    def caught(at: tl.Pointer) -> None:
        try:
            receive(at)
        except BaseException as end:  # noqa: BLE001 - so that the kernel goes on
            ends.append(str(end))

    def following(_: tl.Pointer) -> None:
        ends.append("next")

    def program(rank: int) -> None:
        launched(caught if rank else kernel)
        torch.launch("next", following, torch.empty(1))
        try:
            torch.ahbm.synchronize()
        finally:
            ends.append(f"rank {rank}")
            torch.ahbm.synchronize()
            ends.append("synchronized")

    with pytest.raises(IpcqDeadlock) as raised:
        simulate(program, 2, topology=SMALL)
    assert "sip 0 cube 0 pe 0 recv global_W" in str(raised.value)
    of_kernels = ["kernel", "the run has ended while the program waited for its device"]
    assert ends == ["rank 0", "rank 1", *of_kernels]
    assert not capfd.readouterr().out
