"""The rows of calls, on which the check depends, with and without folding."""

import pytest

from runtime import DPPolicy, tl, torch
from runtime.core.run_tables import CALLS, MEMORY, NONE, ORDERS, STEPS
from runtime.language.value import Pointer
from tests.support.checked import CUBE, checked
from tests.support.joined import ccl_text
from tests.support.racy_kernels import SIZE
from tests.support.recorded_programs import rows_of
from tests.support.world import Simulation, simulate

ROWS = DPPolicy(pe="row_wise", num_cubes=1, num_pes=4)


def of_kernel(*, waits: bool) -> Simulation:
    def kernel(x: Pointer, y: Pointer) -> None:
        if tl.program_id(0) == 0:
            block = tl.full(4096, 1.0, tl.float32)
            store = tl.store_async(x, block[0:1])
            done = tl.exp(block)
            if waits:
                tl.wait(store)
            tl.send("E", done[0:1])
        if tl.program_id(0) == 1:
            tl.recv("W", 1, tl.float32)
            tl.store(y, tl.load(x, 1))

    def program(_rank: int) -> None:
        torch.distributed.init_process_group("ahbm")
        torch.launch("k", kernel, torch.zeros(SIZE, dp=ROWS), torch.zeros(SIZE, dp=ROWS))
        torch.ahbm.synchronize()

    return simulate(program, 1, topology=CUBE, ccl=ccl_text("pe_ring"), record=True)


def test_a_wait_for_what_is_complete_has_a_row_of_no_length_and_changes_the_verdict() -> None:
    without, waited = of_kernel(waits=False), of_kernel(waits=True)
    # The store has ended before the exponential: the wait takes no time.
    assert without.digest == waited.digest
    calls = {each["call"]: each for each in rows_of(waited, 0, CALLS)}
    waits = [each for each in calls.values() if each["operation"] == "wait" and each["program"]]
    stores = [
        each
        for each in waits
        if calls[each["awaits"]]["operation"] == "store_async"
        and "test_records_of_calls" in each["line"]
    ]
    assert [each["end_ps"] - each["begin_ps"] for each in stores] == [0]
    assert [checked(each).reports for each in (without, waited)] == [1, 0]


@pytest.mark.parametrize("grid", [None, (2,)])
def test_what_a_kernel_does_not_wait_for_has_the_line_of_its_call(grid: tuple[int] | None) -> None:
    def kernel(x: Pointer) -> None:
        tl.store_async(x + tl.program_id(0), tl.full(1, 1.0, tl.float32))

    def program(_rank: int) -> None:
        x = torch.zeros(2, dp=DPPolicy(num_cubes=1, num_pes=1))
        if grid is None:
            torch.launch("k", kernel, x)
        else:
            torch.launch("k", kernel, x, grid=grid)
        torch.ahbm.synchronize()

    for rows in (CALLS, STEPS):
        of_kernel = rows_of(simulate(program, 1, topology=CUBE, record=True), 0, rows)
        own = [each for each in of_kernel if "test_records_of_calls" in each["line"]]
        lines = {
            name: [each["line"] for each in own if each["program"] and each["operation"] == name]
            for name in ("store_async", "wait")
        }
        assert lines["wait"] == lines["store_async"] != []


def steps(rank: int) -> None:
    """Launches that repeat, with other tensors and after other commands."""
    del rank
    one = DPPolicy(num_cubes=1, num_pes=1)

    def scale(x: Pointer, y: Pointer) -> None:
        block = tl.wait(tl.load_async(x, 64))
        tl.store(y, tl.exp(block) + tl.empty(64, tl.float32))

    kept = [torch.zeros(64, dp=one)]
    for step in range(8):
        kept.append(torch.zeros(64, dp=one))
        torch.launch("scale", scale, kept[step // 2], kept[-1])
        torch.ahbm.synchronize()


@pytest.mark.parametrize("environment", [{"KERNBENCH_FOLD": "0"}])
def test_rows_are_the_same_with_and_without_folding(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folded = simulate(steps, 1, topology=CUBE, record=True)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    plain = simulate(steps, 1, topology=CUBE, record=True)
    assert folded.rows == plain.rows
    assert folded.texts == plain.texts
    assert len(checked(folded).undefined) == 1


def test_orders_name_commands_that_are_answered_already() -> None:
    def program(_rank: int) -> None:
        side = torch.ahbm.Stream()
        x = torch.zeros(64, dp=DPPolicy(num_cubes=1, num_pes=1))
        torch.ahbm.synchronize()
        with side:
            x[:4] = 1
        side.synchronize()
        torch.ahbm.current_stream().wait_stream(side)
        x[:4] = 2

    world = simulate(program, 1, topology=CUBE, record=True)
    orders = rows_of(world, 0, ORDERS)
    last = max(each["command"] for each in orders)
    reasons = {each["reason"]: each["after"] for each in orders if each["command"] == last}
    assert reasons["event"] == reasons["tensor"] == last - 1


def test_a_tensor_has_the_first_and_the_last_command_that_uses_it() -> None:
    def double(x: Pointer, y: Pointer) -> None:
        tl.store(y, tl.load(x, 64) * 2)

    def program(_rank: int) -> None:
        one = DPPolicy(num_cubes=1, num_pes=1)
        x, y = (torch.zeros(64, dp=one) for _ in range(2))
        unused = torch.empty(64, dp=one)
        torch.launch("double", double, x, y)
        torch.launch("double", double, y, x)
        torch.launch("double", double, x, x)
        # Another tensor in the memory of a dead one has commands of its own.
        del y
        torch.ahbm.synchronize()
        z = torch.zeros(64, dp=one)
        del unused, z

    world = simulate(program, 1, topology=CUBE, record=True)
    uses = [(each["first"], each["last"], each["over"]) for each in rows_of(world, 0, MEMORY)]
    # Zeros are a mapping and a launch each, in memory that is mapped a launch; three more launches.
    assert uses == [(1, 7, NONE), (3, 6, NONE), (NONE, NONE, NONE), (8, 8, 1)]
