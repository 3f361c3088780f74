"""Requests of operations by the engines of a PE: from then on, their records are waits."""

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from runtime import DPPolicy, tl, torch
from runtime.core.run_tables import OPS
from runtime.core.simtime import ps_from_ns
from runtime.model.topology import parse_topology
from tests.support.one_pe import one_pe_text
from tests.support.recorded_programs import Row, rows_of
from tests.support.world import Simulation, simulate

TEXT = one_pe_text()
PE = parse_topology(TEXT, "topology.yaml", 1).pe
COMMAND_PS = ps_from_ns(PE.cpu.overhead_ns) + ps_from_ns(PE.scheduler.overhead_ns)
LANES = PE.math.lanes
CYCLES = PE.math.cycles.values()


def ran(kernel: Callable[..., None]) -> Simulation:
    """The run of a kernel with a tensor of 4,096 elements."""

    def program(_rank: int) -> None:
        x = torch.from_numpy(np.ones(4096, np.float32), dp=DPPolicy(num_cubes=1, num_pes=1))
        torch.launch("kernel", kernel, x)
        torch.ahbm.synchronize()

    return simulate(program, 1, topology=TEXT, record=True)


def rows(kernel: Callable[..., None]) -> list[Row]:
    """The operations of a kernel, in the order of the op log."""
    return rows_of(ran(kernel), 0, OPS)


def of(found: list[Row], engine: str, name: str = "") -> list[Row]:
    return [row for row in found if row["engine"] == engine and name in ("", row["name"])]


def test_an_operation_is_requested_when_its_command_is_issued() -> None:
    def kernel(x: tl.Pointer) -> None:
        tl.exp(tl.load(x, 16 * LANES))

    found = rows(kernel)
    [load], [exp] = of(found, "pe_dma"), of(found, "pe_math")
    assert exp["requested_ps"] == load["end_ps"] + COMMAND_PS
    # It waits until its first vector is in registers, and the engine has nothing else to do.
    assert exp["start_ps"] == exp["requested_ps"] + LANES * 4 * 1000 // PE.fetch_store.bw_gbs
    assert exp["cause"] == ""


def test_an_epilogue_waits_for_the_engine_since_its_tile_is_summed() -> None:
    def kernel(x: tl.Pointer) -> None:
        value = tl.load(x, (64, 64))
        product = tl.composite("gemm", value[:16, :16], value[:16, :16], activation="relu")
        tl.exp(value)
        tl.wait(product)

    found = rows(kernel)
    [exp], [relu] = of(found, "pe_math", "exp"), of(found, "pe_math", "relu")
    [step] = of(found, "pe_gemm")
    assert relu["requested_ps"] == step["end_ps"] < relu["start_ps"] < exp["end_ps"]
    assert relu["cause"] == "engine"


def test_a_step_waits_for_its_operands_since_the_engine_is_free() -> None:
    def kernel(x: tl.Pointer) -> None:
        value = tl.load(x, (64, 64))
        tl.wait(tl.composite("gemm", value, value))

    found = rows(kernel)
    steps = of(found, "pe_gemm")
    late = [(before, after) for before, after in pairwise(steps) if after["cause"] == "operand"]
    assert late
    for before, after in late:
        assert before["end_ps"] == after["requested_ps"] < after["start_ps"]


def test_a_chain_is_requested_when_it_is_queued() -> None:
    def kernel(x: tl.Pointer) -> None:
        value = tl.load(x, 16 * LANES)
        for _ in range(3):
            tl.fused_async(lambda each: tl.exp(each) + 1, value)

    found = rows(kernel)
    [load] = of(found, "pe_dma")
    operations = of(found, "pe_math")
    assert [row["name"] for row in operations] == ["exp", "add"] * 3
    # The kernel goes on at once; the first chain is in the engine when the others are queued. The
    # fetch of a chain begins when the chain before it is in the engine.
    for number in (1, 2):
        exp, add = operations[2 * number : 2 * number + 2]
        assert exp["requested_ps"] == load["end_ps"] + (number + 1) * COMMAND_PS < exp["start_ps"]
        # The second operation of a chain waits for the first one only.
        assert (exp["cause"], add["cause"], add["requested_ps"]) == ("engine", "", add["start_ps"])


def test_the_operations_of_a_pass_share_its_time_by_their_cycles() -> None:
    def kernel(x: tl.Pointer) -> None:
        tl.fused(lambda each: tl.exp(tl.sum(tl.exp(each) + 1)), tl.load(x, 16 * LANES))

    world = ran(kernel)
    exp, add, total, result = of(rows_of(world, 0, OPS), "pe_math")
    assert [exp["end_ps"], add["end_ps"], total["end_ps"]] == [
        add["start_ps"],
        total["start_ps"],
        result["start_ps"],
    ]
    cycles = [CYCLES[name] for name in ("exp", "add", "sum")]
    streamed_ps = total["end_ps"] - exp["start_ps"]
    assert exp["end_ps"] - exp["start_ps"] == streamed_ps * cycles[0] // sum(cycles)
    # Behind the stream: the tree of the sum, with a level for each power of two, and one vector.
    tree = PE.math.tree_level_cycles * (LANES - 1).bit_length()
    behind_ps = round((tree + CYCLES["exp"]) * 1000 / PE.math.clock_ghz)
    assert result["end_ps"] - result["start_ps"] == behind_ps
    # The engine is busy from the first vector to the last result.
    assert world.done.sips[0].counters["math_busy_ps"] == result["end_ps"] - exp["start_ps"]
