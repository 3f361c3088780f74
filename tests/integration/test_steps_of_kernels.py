"""Steps of kernels, and the causes of their waits, against the records of the op log."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from runtime import DPPolicy, tl, torch
from runtime.core import dtypes
from runtime.core.simtime import ps_from_ns
from runtime.model.topology import parse_topology
from tests.support.joined import ccl_text, message
from tests.support.recorded_programs import RecordedProgram, Row, programs_of
from tests.support.topologies import variant_text
from tests.support.world import Simulation, simulate

TOPOLOGY = variant_text(
    sip__cube_mesh={"w": 1, "h": 1},
    cube__pe_layout__pe_per_corner=1,
    cube__pe_layout__corners=["NW", "NE"],
)
PE = parse_topology(TOPOLOGY, "topology.yaml", 1).pe
COMMAND_PS = ps_from_ns(PE.cpu.overhead_ns) + ps_from_ns(PE.scheduler.overhead_ns)
TRANSLATED_PS = COMMAND_PS + ps_from_ns(PE.mmu.overhead_ns)
PAIR = "tests.support.joined.pair_0_0_0_1"
HERE = "tests/integration/test_steps_of_kernels.py"


def recorded(
    kernel: Callable[..., None], *, pes: int = 1, queues: dict[str, Any] | None = None
) -> Simulation:
    """Run a kernel on PEs of one cube, with a tensor of 4,096 elements."""

    def program(rank: int) -> None:
        if queues is not None:
            torch.distributed.init_process_group("ahbm")
        placement = DPPolicy(num_cubes=1, num_pes=pes, pe="replicate")
        x = torch.from_numpy(np.ones(4096, np.float32), dp=placement)
        torch.launch("kernel", kernel, x)
        torch.ahbm.synchronize()

    ccl = None if queues is None else ccl_text(PAIR, **queues)
    return simulate(program, 1, topology=TOPOLOGY, ccl=ccl, record=True)


def kernels(world: Simulation) -> list[RecordedProgram]:
    """The kernels by PE."""
    return [each for each in programs_of(world, 0) if each.program["thread"] == "kernels"]


def released(world: Simulation, step: Row) -> tuple[str, str, int]:
    """Engine, name and end of the operation that released a step."""
    record = world.records[0][step["released_by"]]
    return record.engine, record.name, record.end_ps


def test_a_kernel_that_loads_adds_and_stores_has_three_steps() -> None:
    def kernel(x: tl.Pointer) -> None:
        value = tl.load(x, 64)
        total = value + 1
        tl.store(x, total)

    world = recorded(kernel)
    [(program, steps)] = kernels(world)
    load, add, store = steps
    begin = program["begin_ps"]
    assert [step["operation"] for step in steps] == ["load", "math add", "store"]
    assert [step["cause"] for step in steps] == ["operand", "engine", "operand"]
    assert [step["issued_ps"] - step["begin_ps"] for step in steps] == [
        TRANSLATED_PS,
        COMMAND_PS,
        TRANSLATED_PS,
    ]
    # The chain, by hand: each step begins where its predecessor has ended.
    assert [load["begin_ps"], add["begin_ps"], store["begin_ps"]] == [
        begin,
        load["end_ps"],
        add["end_ps"],
    ]
    assert store["end_ps"] == program["end_ps"]
    first = kernel.__code__.co_firstlineno
    assert [step["line"] for step in steps] == [f"{HERE}:{first + 1 + n}" for n in range(3)]
    assert released(world, load) == ("pe_dma", "load", load["end_ps"])
    assert released(world, add) == ("pe_math", "add", add["end_ps"])
    assert released(world, store) == ("pe_dma", "store", store["end_ps"])
    assert all(step["direction"] == "" and step["peer_pe"] == -1 for step in steps)


def test_a_wait_for_an_operation_in_flight_names_what_it_waits_for() -> None:
    def kernel(x: tl.Pointer) -> None:
        load = tl.load_async(x, 4096)
        value = load.wait()
        matrix = tl.composite("gemm", value.reshape(64, 64), value.reshape(64, 64))
        tl.wait(matrix)

    world = recorded(kernel)
    [(_, steps)] = kernels(world)
    assert [(step["operation"], step["cause"]) for step in steps] == [
        ("load_async", ""),
        ("wait", "operand"),
        ("composite", ""),
        ("wait", "engine"),
    ]
    # A command in the background costs its overhead and nothing else, and nothing releases it.
    assert [step["end_ps"] - step["begin_ps"] for step in steps[::2]] == [TRANSLATED_PS, COMMAND_PS]
    assert [step["released_by"] for step in steps[::2]] == [-1, -1]
    assert [step["issued_ps"] - step["begin_ps"] for step in steps[1::2]] == [0, 0]
    assert released(world, steps[1]) == ("pe_dma", "load", steps[1]["end_ps"])
    assert world.records[0][steps[3]["released_by"]].end_ps == steps[3]["end_ps"]


def conversation(delay: int, slots: int) -> tuple[Simulation, list[RecordedProgram]]:
    """PE 0 sends four slots to PE 1, which first computes `delay` additions."""

    def kernel(x: tl.Pointer) -> None:
        if tl.program_id(0) == 0:
            for _ in range(4):
                tl.send("E", message(256))
        else:
            for _ in range(delay):
                _ = message(64_000) + 1
            for _ in range(4):
                with tl.scratch():
                    tl.recv("W", 256, dtypes.int8)

    world = recorded(kernel, pes=2, queues={"n_slots": slots, "slot_size": 256})
    return world, kernels(world)


def test_a_send_into_a_full_ring_waits_for_a_credit() -> None:
    world, (sender, _) = conversation(delay=4, slots=1)
    sends = [step for step in sender.steps if step["operation"] == "send"]
    assert [step["cause"] for step in sends] == ["", "credit", "credit", "credit"]
    assert {
        (step["direction"], step["peer_sip"], step["peer_cube"], step["peer_pe"]) for step in sends
    } == {("E", 0, 0, 1)}
    assert {released(world, step)[:2] for step in sends} == {("pe_dma", "ipcq_send")}
    assert all(step["issued_ps"] - step["begin_ps"] == COMMAND_PS for step in sends)


def test_a_send_into_a_ring_with_empty_slots_waits_for_nothing_else() -> None:
    _, (sender, _) = conversation(delay=4, slots=4)
    assert [step["cause"] for step in sender.steps] == ["", "", "", ""]


def test_a_receive_waits_for_a_slot_and_its_copy_releases_it() -> None:
    world, (_, receiver) = conversation(delay=0, slots=1)
    posted, waits = receiver.steps[::2], receiver.steps[1::2]
    assert {step["operation"] for step in posted} == {"recv"}
    assert {step["end_ps"] - step["begin_ps"] for step in posted} == {COMMAND_PS}
    assert {(step["operation"], step["cause"]) for step in waits} == {("wait", "slot")}
    assert {(step["direction"], step["peer_cube"], step["peer_pe"]) for step in waits} == {
        ("W", 0, 0)
    }
    assert [released(world, step) for step in waits] == [
        ("pe_dma", "ipcq_recv", step["end_ps"]) for step in waits
    ]


def test_a_barrier_waits_for_peers_and_no_operation_releases_it() -> None:
    def kernel(x: tl.Pointer) -> None:
        if tl.program_id(0) == 1:
            _ = message(64_000) + 1
        tl.barrier()

    first, second = (each.steps[-1] for each in kernels(recorded(kernel, pes=2)))
    for step in (first, second):
        assert (step["operation"], step["cause"], step["released_by"]) == ("barrier", "peer", -1)
    assert first["end_ps"] - first["begin_ps"] > second["end_ps"] - second["begin_ps"]


def test_a_program_names_its_kernel_its_command_and_the_line_of_its_launch() -> None:
    def kernel(x: tl.Pointer) -> None:
        tl.store(x, tl.load(x, 8))

    world = recorded(kernel)
    [(program, _)] = kernels(world)
    [run] = [record for _, record in world.of("pe_cpu", "kernel kernel")]
    assert (program["begin_ps"], program["end_ps"]) == (run.start_ps, run.end_ps)
    assert (program["kernel"], program["cube"], program["pe"]) == ("kernel", 0, 0)
    assert program["line"].startswith(f"{HERE}:")
    assert program["command"] > 0


@pytest.mark.parametrize("record", [False, True])
def test_records_change_no_time_and_no_digest(record: bool) -> None:
    def program(rank: int) -> list[float]:
        x = torch.from_numpy(np.arange(64, dtype=np.float32))
        return (x + x).numpy().tolist()

    world = simulate(program, 2, topology=TOPOLOGY, record=record)
    assert world.digests == simulate(program, 2, topology=TOPOLOGY).digests
    assert bool(world.rows) == record
