"""Each operation of a kernel names the step of the call that issued it."""

from collections import defaultdict
from typing import Any

import pytest

from runtime import DPPolicy, tl, torch
from runtime.core.compiled.choice import IS_COMPILED
from runtime.core.run_tables import NONE, OPS, STEPS
from runtime.language.value import Pointer
from runtime.wire.environment import FOLD
from tests.support.checked import CUBE
from tests.support.issued_operations import misattributed
from tests.support.joined import ccl_text
from tests.support.recorded_programs import rows_of
from tests.support.topologies import variant_text
from tests.support.world import Simulation, simulate

ROWS, ONE = DPPolicy(pe="row_wise", num_cubes=1, num_pes=4), DPPolicy(num_cubes=1, num_pes=1)
SLOTS, SLOT = 3, 1024
"""A message of three slots of 4,096 bytes."""
SIDE = 48
WITHOUT_COST = variant_text(
    sip__cube_mesh={"w": 1, "h": 1},
    cube__pe_layout__pe_per_corner=1,
    pe__cpu__overhead_ns=0.0,
    pe__scheduler__overhead_ns=0.0,
    pe__mmu__overhead_ns=0.0,
)
"""A machine on which a command costs no time."""


def messages(x: Pointer, y: Pointer, size: int) -> None:
    """Kernel: operations of all kinds in flight at once, and messages in the background."""
    own, elements = x + tl.program_id(0) * size, SLOTS * SLOT
    block = tl.load(own, elements)
    sends = [tl.send_async("E", block), tl.send_async("E", block[0:SLOT])]
    left, right = (tl.load_async(own + each, (SIDE, SIDE)) for each in (0, 1))
    products = [tl.composite("gemm", left.wait(), right.wait()) for _ in range(2)]
    tl.recv("W", elements, tl.float32, dst_addr=y + tl.program_id(0) * size)
    received = tl.recv_async("W", SLOT, tl.float32)
    old = tl.atomic("add", y + tl.program_id(0) * size + elements, tl.full(8, 1.0, tl.float32))
    tl.fused(lambda a: tl.exp(a) - tl.sum(a), old)
    with tl.scratch():
        tl.store(own + elements, tl.softmax(received.wait().reshape(32, 32)), (64, 1))
    tl.store_async(own, tl.dot(left.wait(), tl.wait(products[0])), (SIDE + 1, 1))
    tl.wait(products[1])
    for each in sends:
        tl.wait(each)


def of_messages(topology: str = CUBE, **options: Any) -> Simulation:
    def program(_rank: int) -> None:
        torch.distributed.init_process_group("ahbm")
        size = SLOTS * SLOT + 4096
        x, y = (torch.zeros(4 * size, dp=ROWS) for _ in range(2))
        torch.launch("messages", messages, x, y, size)
        torch.ahbm.synchronize()

    ccl = ccl_text("pe_ring")
    return simulate(program, 1, topology=topology, ccl=ccl, record=True, **options)


def streamed(rows: int, depth: int) -> Simulation:
    """Two products of the same operands, of which the second is in flight beside the first."""

    def kernel(a: Pointer, b: Pointer, c: Pointer, d: Pointer) -> None:
        left, right = tl.ref(a, (rows, depth)), tl.ref(b, (depth, 128))
        both = [tl.composite("gemm", left, right, out=tl.ref(each, (rows, 128))) for each in (c, d)]
        for each in both:
            tl.wait(each)

    def program(_rank: int) -> None:
        a, b = torch.zeros((rows, depth), dp=ONE), torch.zeros((depth, 128), dp=ONE)
        c, d = (torch.zeros((rows, 128), dp=ONE) for _ in range(2))
        torch.launch("streamed", kernel, a, b, c, d)
        torch.ahbm.synchronize()

    return simulate(program, 1, topology=CUBE, record=True)


def repeated(_rank: int) -> None:
    """Launches of one kernel, with other tensors, beside steps of the rank program."""

    def scale(x: Pointer, y: Pointer) -> None:
        block = tl.wait(tl.load_async(x, 64))
        tl.store(y, tl.exp(block))

    kept = [torch.zeros(64, dp=ONE)]
    for step in range(8):
        kept.append(torch.zeros(64, dp=ONE))
        torch.launch("scale", scale, kept[step // 2], kept[-1])
        torch.ahbm.synchronize()


def _module(line: str) -> str:
    """The module of a line of source."""
    return line.partition(".py:")[0].replace("/", ".")


def by_call(world: Simulation) -> dict[str, list[dict[str, Any]]]:
    """The operations of a SIP by what the program called."""
    steps = {each["step"]: each["operation"] for each in rows_of(world, 0, STEPS)}
    issued = defaultdict[str, list[dict[str, Any]]](list)
    for op in rows_of(world, 0, OPS):
        issued["" if op["step"] == NONE else steps[op["step"]]].append(op)
    return issued


@pytest.mark.parametrize("data", [True, False])
def test_operations_in_flight_together_name_their_own_calls(*, data: bool) -> None:
    world = of_messages(data=data)
    assert misattributed(world) == []
    issued = by_call(world)
    slots = [each for each in issued["send_async"] if each["name"] == "ipcq_send"]
    # Two messages of each PE; all slots but the first leave while the kernel does something else.
    assert len(slots) == 4 * (SLOTS + 1)
    assert sum(each["name"] == "arrival" for each in issued["send_async"]) == len(slots)
    assert len(issued["recv"]) == len(slots)
    assert {each["engine"] for each in issued["atomic"]} == {"pe_dma", "hbm_ctrl"}
    assert {each["engine"] for each in issued[""]} == {"host", "io_cpu", "pe_cpu"}


def test_tiles_of_products_in_flight_name_the_call_of_theirs() -> None:
    world = streamed(64, 1024)
    assert misattributed(world) == []
    calls = [each for each in rows_of(world, 0, STEPS) if each["operation"] == "composite"]
    tiles = [
        [each for each in rows_of(world, 0, OPS) if each["step"] == call["step"]] for call in calls
    ]
    first, second = ([each["name"] for each in of_product] for of_product in tiles)
    assert sorted(first) == sorted(second)
    assert len(first) > 100
    # The first tiles of the second product are loaded before the last of the first is stored.
    assert min(each["start_ps"] for each in tiles[1]) < max(each["end_ps"] for each in tiles[0])


@pytest.mark.skipif(not IS_COMPILED, reason="the reference simulates every step")
def test_tiles_of_steps_that_are_computed_ahead_name_the_call_of_their_product() -> None:
    world = streamed(1024, 256)
    assert world.done.skipped_steps > 0
    assert misattributed(world) == []


def test_a_launch_that_is_repeated_has_the_steps_of_one_that_is_simulated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folded = simulate(repeated, 1, topology=CUBE, record=True)
    monkeypatch.setenv(FOLD, "0")
    simulated = simulate(repeated, 1, topology=CUBE, record=True)
    assert folded.done.repeated_kernels > 0 or not IS_COMPILED
    assert rows_of(folded, 0, OPS) == rows_of(simulated, 0, OPS)
    assert misattributed(folded) == []
    own = [each["step"] for each in rows_of(folded, 0, STEPS) if __name__ in _module(each["line"])]
    numbers = [each["step"] for each in rows_of(folded, 0, OPS) if each["step"] in own]
    # Each launch loads, computes and stores in steps of its own.
    assert len(numbers) == len(set(numbers)) == 8 * 3


def test_a_command_without_cost_has_a_step_which_its_operations_name() -> None:
    assert misattributed(of_messages(WITHOUT_COST)) == []


def test_a_crossing_names_the_send_in_the_sip_where_it_begins_and_no_other() -> None:
    def program(rank: int) -> None:
        torch.distributed.init_process_group("ahbm")
        x = torch.zeros(3000, dp=ONE)
        # In a ring of four SIPs, the message passes one of the others.
        if rank == 0:
            torch.distributed.send(x, 2)
        elif rank == 2:
            torch.distributed.recv(x, 0)

    world = simulate(program, 4, topology=variant_text(system__sips__count=4), record=True)
    assert misattributed(world) == []
    crossings = {
        sip: [each for each in rows_of(world, sip, OPS) if each["name"] == "ipcq_data"]
        for sip in range(4)
    }
    sends = [each for each in rows_of(world, 0, OPS) if each["name"] == "ipcq_send"]
    at_source = [(each["address"], each["step"]) for each in crossings[0]]
    assert at_source == [(each["address"], each["step"]) for each in sends] != []
    passing = [each["step"] for sip in (1, 2, 3) for each in crossings[sip]]
    assert passing == [NONE] * len(sends)
    arrivals = [each for each in rows_of(world, 2, OPS) if each["name"] == "arrival"]
    assert [each["step"] for each in arrivals] == [NONE] * len(sends)


def test_pieces_of_tiles_and_epilogues_name_the_call_of_their_product() -> None:
    def kernel(a: Pointer, b: Pointer, c: Pointer) -> None:
        bias = tl.zeros(64, tl.float32)
        # A tile is in the memories of several PEs.
        left, right, out = tl.ref(a, (64, 256)), tl.ref(b, (256, 64)), tl.ref(c, (64, 64))
        product = tl.composite("gemm", left, right, out=out, bias=bias, activation="relu")
        for _ in range(400):
            tl.exp(bias)
        tl.wait(product)

    def program(_rank: int) -> None:
        a, c = torch.zeros((64, 256), dp=ROWS), torch.zeros((64, 64), dp=ROWS)
        torch.launch("pieces", kernel, a, torch.zeros((256, 64), dp=ONE), c, grid=(1,))
        torch.ahbm.synchronize()

    topology = variant_text(
        sip__cube_mesh={"w": 1, "h": 1},
        cube__pe_layout__pe_per_corner=1,
        pe__tile={"m": 32, "k": 16, "n": 32},
    )
    world = simulate(program, 1, topology=topology, record=True)
    assert misattributed(world) == []
    tiles = by_call(world)["composite"]
    loads = [each for each in tiles if each["name"] == "load"]
    steps = [each for each in tiles if each["name"] == "gemm"]
    # 16 rows are on a PE, so each of two tiles of `a` is in two pieces.
    assert len(loads) == 3 * len(steps)
    epilogues = [each["name"] for each in tiles if each["engine"] == "pe_math"]
    assert epilogues == ["add", "relu"] * 4
