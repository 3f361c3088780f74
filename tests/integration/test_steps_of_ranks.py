"""Waits of rank programs, and the commands of the host: the tables of a recorded run."""

from collections.abc import Callable

import numpy as np

from runtime import DPPolicy, tl, torch
from runtime.core.run_tables import COMMANDS, OPS
from runtime.core.simtime import serialisation_ps
from runtime.model.topology import parse_topology
from tests.support.recorded_programs import RecordedProgram, Row, programs_of, rows_of
from tests.support.topologies import variant_text
from tests.support.world import Simulation, simulate

TOPOLOGY = variant_text(
    sip__cube_mesh={"w": 1, "h": 1},
    cube__pe_layout__pe_per_corner=1,
    cube__pe_layout__corners=["NW"],
    host__launch_overhead_ns=35.0,
)
HERE = "tests/integration/test_steps_of_ranks.py"
ONE_SHARD = DPPolicy(num_cubes=1, num_pes=1)


def kernel(x: tl.Pointer) -> None:
    tl.store(x, tl.load(x, 8) + 1)


def recorded(
    main: Callable[[torch.Tensor], object],
) -> tuple[Simulation, RecordedProgram, list[Row]]:
    """Run `main(x)` on a SIP of one PE: the world, its rank program, its commands by number."""

    def program(rank: int) -> None:
        main(torch.from_numpy(np.zeros(8, np.float32), dp=ONE_SHARD))

    world = simulate(program, 1, topology=TOPOLOGY, record=True)
    [rank] = [each for each in programs_of(world, 0) if each.program["thread"] == "rank"]
    commands = sorted(rows_of(world, 0, COMMANDS), key=lambda command: command["command"])
    return world, rank, commands


def line(main: Callable[[torch.Tensor], object], number: int) -> str:
    """Line `number` of the body of a function of this file."""
    return f"{HERE}:{main.__code__.co_firstlineno + number}"


def test_a_launch_blocks_nothing_and_reading_a_tensor_waits_for_it() -> None:
    def main(x: torch.Tensor) -> None:
        torch.launch("add", kernel, x)
        x.numpy()

    world, rank, commands = recorded(main)
    assert rank.gaps == []
    [step] = rank.steps
    assert (step["operation"], step["cause"], step["line"]) == ("numpy", "command", line(main, 2))
    assert (rank.program["program"], rank.program["begin_ps"]) == (0, 0)
    read = commands[-1]
    assert (step["end_ps"], read["kind"]) == (read["end_ps"], "MemoryReadMsg")
    released = world.records[0][step["released_by"]]
    assert (released.engine, released.name) == ("host", "MemoryReadMsg")


def test_every_wait_of_a_rank_has_the_name_of_its_call_and_its_line() -> None:
    def main(x: torch.Tensor) -> None:
        torch.launch("add", kernel, x)
        torch.ahbm.synchronize()
        event = torch.ahbm.Event()
        torch.launch("add", kernel, x)
        event.record()
        event.synchronize()

    _, rank, _ = recorded(main)
    assert rank.gaps == []
    assert [(step["operation"], step["line"]) for step in rank.steps] == [
        ("synchronize", line(main, 2)),
        ("synchronize", line(main, 6)),
    ]


def test_commands_of_a_stream_follow_each_other_and_name_their_predecessor() -> None:
    def main(x: torch.Tensor) -> None:
        torch.launch("first", kernel, x)
        torch.launch("second", kernel, x)
        torch.ahbm.synchronize()

    world, _, commands = recorded(main)
    launches = [command for command in commands if command["kind"] == "KernelLaunchMsg"]
    first, second = launches
    assert [command["line"] for command in launches] == [line(main, 1), line(main, 2)]
    assert [command["why"] for command in launches] == ["kernel 'first'", "kernel 'second'"]
    assert second["after"] == first["command"]
    # The IO_CPU releases the second at the end of the first, before the host has the answer.
    ends = {program.program["command"]: program.program["end_ps"] for program in kernels(world)}
    assert ends[first["command"]] < second["begun_ps"] < first["end_ps"]


def test_a_command_leaves_the_host_after_its_overhead() -> None:
    def main(x: torch.Tensor) -> None:
        torch.ahbm.synchronize()
        torch.launch("add", kernel, x)

    _, rank, commands = recorded(main)
    idle_ps = rank.steps[0]["end_ps"]
    # The tensor is mapped first: the host spends its overhead on both, one after the other.
    mapping, launch = commands[-2:]
    assert [command["submitted_ps"] for command in (mapping, launch)] == [idle_ps, idle_ps]
    assert [command["departed_ps"] - idle_ps for command in (mapping, launch)] == [35_000, 70_000]
    assert (mapping["after"], launch["after"]) == (-1, mapping["command"])
    for command in commands:
        times = [command[f"{name}_ps"] for name in ("submitted", "departed", "begun", "end")]
        assert times == sorted(times)


def test_kernels_name_the_command_that_launched_them() -> None:
    def main(x: torch.Tensor) -> None:
        torch.launch("first", kernel, x)
        torch.launch("second", kernel, x)

    world, _, commands = recorded(main)
    why = {command["command"]: command["why"] for command in commands}
    assert [(each.program["kernel"], why[each.program["command"]]) for each in kernels(world)] == [
        ("first", "kernel 'first'"),
        ("second", "kernel 'second'"),
    ]
    assert {each.program["line"] for each in kernels(world)} == {line(main, 1), line(main, 2)}


def kernels(world: Simulation) -> list[RecordedProgram]:
    """The kernels in the order of their starts."""
    return [each for each in programs_of(world, 0) if each.program["thread"] == "kernels"]


def test_requests_of_a_copy_wait_for_each_other_at_the_link_of_the_host() -> None:
    nbytes, pes = 16_384, 2
    topology = variant_text(
        sip__cube_mesh={"w": 1, "h": 1},
        cube__pe_layout__pe_per_corner=1,
        cube__pe_layout__corners=["NW", "NE"],
    )
    pcie_gbs = parse_topology(topology, "topology.yaml", 1).sip.io_chiplet.pcie_ep.bw_gbs

    def program(rank: int) -> None:
        x = torch.from_numpy(
            np.zeros((pes, nbytes), np.int8), dp=DPPolicy(num_cubes=1, pe="row_wise")
        )
        torch.ahbm.synchronize()
        x.numpy()

    world = simulate(program, 1, topology=topology, record=True)
    rows = [row for row in rows_of(world, 0, OPS) if row["engine"] == "host"]
    writes, reads = (
        sorted((row for row in rows if row["name"] == name), key=lambda row: row["end_ps"])
        for name in ("MemoryWriteMsg", "MemoryReadMsg")
    )
    # The bytes of the first request are in front of those of the second one.
    behind_ps = serialisation_ps(nbytes, pcie_gbs)
    assert [(row["link_ps"], row["link"], row["cause"]) for row in writes] == [
        (0, "", ""),
        (behind_ps, "host->io.pcie_ep", "link"),
    ]
    # The data of both reads meet on their way back, packet by packet.
    assert all(row["link_ps"] > 0 for row in reads)
    assert {row["link"] for row in reads} == {"io.pcie_ep->host"}
