"""Races that only one of many launches has, or that lie between launches, are reported with the
names of what they are about; their right twins are not.
"""

from collections.abc import Callable

import pytest

from kernbench.explain.check.findings import Findings
from runtime import DPPolicy, tl, torch
from runtime.device.launches.launch import launch_on
from runtime.language.value import Pointer
from tests.support.checked import CUBE, TWO_CUBES, findings
from tests.support.joined import ccl_text

COUNT = 64
ONE = DPPolicy(num_cubes=1, num_pes=1)
FOUR = DPPolicy(pe="row_wise", num_cubes=1, num_pes=4)
ALL = DPPolicy(cube="row_wise", pe="row_wise")


def ones() -> tl.Value:
    return tl.full(COUNT, 1.0, tl.float32)


def token() -> tl.Value:
    return tl.full(1, 1.0, tl.float32)


def one_launch_of_many(right: int) -> None:
    def step(x: Pointer, y: Pointer, has_barrier: int) -> None:
        me = tl.program_id(0)
        tl.store(x + me * COUNT, ones())
        if has_barrier:
            tl.barrier()
        tl.store(y + me * COUNT, tl.load(x + (me + 1) % 4 * COUNT, COUNT))

    x, y = (torch.zeros(4 * COUNT, dp=FOUR) for _ in "xy")
    for number in range(60):
        torch.launch("step", step, x, y, right or number != 30)


def token_that_an_earlier_launch_has_left(right: int) -> None:
    def first(x: Pointer) -> None:
        if tl.program_id(0) == 0:
            for _ in range(2 - right):
                tl.send("E", token())
        if tl.program_id(0) == 1:
            tl.recv("W", 1, tl.float32)

    def second(x: Pointer, y: Pointer) -> None:
        if tl.program_id(0) == 0:
            tl.store(x, ones())
            tl.send("E", token())
        if tl.program_id(0) == 1:
            tl.recv("W", 1, tl.float32)
            tl.store(y, tl.load(x, COUNT))
            if not right:
                tl.recv("W", 1, tl.float32)

    x, y = (torch.zeros(4 * COUNT, dp=FOUR) for _ in "xy")
    torch.launch("first", first, x)
    torch.launch("second", second, x, y)


def tensor_that_no_argument_names(right: int) -> None:
    """Launches on two PEs, in two streams, one of which has the other's tensor as an address."""
    x, y, side = torch.zeros(COUNT, dp=ONE), torch.zeros(COUNT, dp=ONE), torch.ahbm.Stream()
    source, target = (Pointer(each.data_ptr(), tl.float32) for each in (x, y))
    launch_on("map", lambda: None, (), [x, y], [(0, 0), (0, 1)], local=True)
    torch.ahbm.synchronize()
    launch_on("fill", lambda: tl.store(source, ones()), (), [x], [(0, 0)], local=True)
    if right:
        side.wait_stream(torch.ahbm.current_stream())
    with side:
        copy = (lambda: tl.store(target, tl.load(source, COUNT)), ())
        launch_on("copy", *copy, [y], [(0, 1)], local=True)


def element_of_the_next_tensor(right: int) -> None:
    """A load that begins in one tensor ends in the next one, which has the next page."""

    def kernel(x: Pointer, y: Pointer, z: Pointer) -> None:
        if tl.program_id(0) == 0:
            tl.store(z, tl.load(x + 1020, 4 + (not right)))
        if tl.program_id(0) == 1:
            tl.store(y, token())

    x, y = (torch.zeros(1024, dp=ONE) for _ in "xy")
    z = torch.zeros(4 * COUNT, dp=FOUR)
    torch.launch("kernel", kernel, x, y, z)


LAUNCHES: dict[Callable[[int], None], str] = {
    one_launch_of_many: "t1[256]",
    token_that_an_earlier_launch_has_left: "t1[256]",
    tensor_that_no_argument_names: "t1[64]",
    element_of_the_next_tensor: "t2[1024]",
}


def run(launches: Callable[[int], None], right: int, *, data: bool) -> Findings:
    def program(_rank: int) -> None:
        torch.distributed.init_process_group("ahbm")
        launches(right)
        torch.ahbm.synchronize()

    ccl = ccl_text("tests.support.joined.pair_0_0_0_1")
    return findings(program, ccl=ccl, data=data, topology=CUBE)


@pytest.mark.parametrize(("launches", "tensor"), LAUNCHES.items())
def test_a_race_of_one_launch_or_between_two_is_reported(
    launches: Callable[[int], None], tensor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folded = run(launches, 0, data=True)
    assert [each.tensor for each in folded.races] == [tensor]
    assert run(launches, 1, data=True).reports == 0
    monkeypatch.setenv("KERNBENCH_FOLD", "0")
    assert run(launches, 0, data=False) == folded
    assert run(launches, 1, data=False).reports == 0


@pytest.mark.parametrize("missing", range(3))
def test_cubes_are_joined_by_barriers_on_both_sides_of_a_message(missing: int) -> None:
    """Cube 0 stores, its first PE sends to that of cube 1, which loads; 0 leaves out nothing."""

    def passed_on(x: Pointer, y: Pointer) -> None:
        pe, cube = tl.program_id(0), tl.program_id(1)
        tl.store(x + (4 * cube + pe) * COUNT, ones())
        if missing != 1:
            tl.barrier("cube")
        if pe == 0 and cube == 0:
            tl.send("E", token())
        if pe == 0 and cube == 1:
            tl.recv("W", 1, tl.float32)
        if missing != 2:
            tl.barrier("cube")
        if cube == 1:
            tl.store(y + (4 + pe) * COUNT, tl.load(x + pe * COUNT, COUNT))

    def program(_rank: int) -> None:
        torch.distributed.init_process_group("ahbm")
        torch.launch("passed_on", passed_on, *(torch.zeros(8 * COUNT, dp=ALL) for _ in "xy"))
        torch.ahbm.synchronize()

    ccl = ccl_text("tests.support.joined.pair_0_0_1_0")
    reports = findings(program, ccl=ccl, topology=TWO_CUBES).races
    # Of the cube without a barrier, the PE of the message alone is in order.
    assert [each.pairs for each in reports] == [3] * bool(missing)
