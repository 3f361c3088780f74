"""Collectives whose kernels run from lists leave what those leave whose functions run."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
import yaml

from runtime import DPPolicy, torch
from runtime.core.config.config_file import default_file
from runtime.core.dtypes import bfloat16, float16, float32, int8, int32
from runtime.core.errors import CollectiveMismatchError, IpcqDeadlock
from runtime.wire.environment import FOLD
from sip_node.chip.kernel import PeLaunch
from sip_node.chip.pe.pe import Pe
from sip_node.programs.lists import command_lists
from sip_node.programs.lists.key_states import KeyState
from tests.support.collectives import all_of_them
from tests.support.reductions import ALGORITHMS, Kind, drawn
from tests.support.repeated_launches import MESH
from tests.support.runs_left import left
from tests.support.topologies import variant_text
from tests.support.world import Simulation, simulate

dist = torch.distributed
Program = Callable[[int], Any]

KINDS: tuple[Kind, ...] = (
    (float32, dist.ReduceOp.SUM),
    (float16, dist.ReduceOp.AVG),
    (bfloat16, dist.ReduceOp.MAX),
    (int8, dist.ReduceOp.MIN),
    (int32, dist.ReduceOp.BXOR),
)
MACHINES: dict[str, dict[str, Any]] = {
    "calendars": {},
    "credits": {"noc__flow_control": "credits"},
    "banks": {"hbm__model": "banks"},
    "disturbed hosts": {
        "jitter__seed": 7,
        "jitter__start_skew_ns": 400,
        "jitter__command_ns": 30,
        "jitter__crossing_ns": 50,
    },
}
GRIDS: dict[int, dict[str, Any]] = {
    sips: {
        "system__sips__topology": "torus_2d",
        "system__sips__w": columns,
        "system__sips__h": sips // columns,
    }
    for sips, columns in ((4, 2), (6, 3), (9, 3))
}
"""Machines for the algorithm of two axes, by their SIPs."""


def outcome(program: Program, sips: int, **options: Any) -> Simulation | Exception:
    try:
        return simulate(program, sips, **options)
    except Exception as error:  # noqa: BLE001 - errors are compared, too
        return error


class Outcomes(NamedTuple):
    """Runs of a program whose collectives run from lists, and from their functions."""

    listed: Simulation | Exception
    functions: Simulation | Exception

    @property
    def only_one_has_lists(self) -> bool:
        """Whether kernels ran from lists in the first run alone."""
        listed, functions = (
            each.done.listed_kernels if isinstance(each, Simulation) else 0 for each in self
        )
        return listed > 0 and functions == 0


def both(monkeypatch: pytest.MonkeyPatch, program: Program, sips: int, **options: Any) -> Outcomes:
    monkeypatch.setenv(FOLD, "0")
    functions = outcome(program, sips, **options)
    monkeypatch.setenv(FOLD, "1")
    return Outcomes(outcome(program, sips, **options), functions)


def queues(algorithm: str, **values: object) -> str:
    """The file that ships, with other queues for an algorithm."""
    ccl = yaml.safe_load(default_file("ccl.yaml").read_text())
    ccl["algorithms"][algorithm] |= values
    return yaml.safe_dump(ccl)


def reducing(algorithm: str, kind: Kind, count: int) -> Program:
    """All-reduces of equal shapes by two operations, at different addresses."""
    dtype, op = kind
    pes = None if algorithm == "hierarchical" else 1
    placed = DPPolicy(cube="row_wise", pe="row_wise", num_pes=pes)

    def program(rank: int) -> list[np.ndarray]:
        dist.init_process_group("ahbm", algorithm=algorithm)
        tensors = [
            torch.from_numpy(each, dp=placed) for each in drawn(kind, (4, count), 5, seed=rank)
        ]
        # A kernel on one PE of a rank is recorded the third time.
        for tensor, each in zip(tensors, (op, dist.ReduceOp.MAX, op, op, op), strict=True):
            dist.all_reduce(tensor, each)
        assert all(tensor.dtype == dtype for tensor in tensors)
        return [tensor.numpy() for tensor in tensors]

    return program


@pytest.mark.parametrize(
    ("algorithm", "sips"),
    [
        *((each, sips) for each in ALGORITHMS if each != "torus" for sips in (2, 3, 4)),
        *(("torus", sips) for sips in GRIDS),
    ],
)
def test_all_reduces_from_lists_leave_what_their_functions_leave(
    monkeypatch: pytest.MonkeyPatch, algorithm: str, sips: int
) -> None:
    # Over all runs each algorithm has several machines, types, and sizes that do not divide.
    turn = ALGORITHMS.index(algorithm) + sips
    machine = tuple(MACHINES.values())[turn % len(MACHINES)]
    if algorithm == "torus":
        machine = machine | GRIDS[sips]
    program = reducing(algorithm, KINDS[turn % len(KINDS)], (1, 37, 301)[turn % 3])
    run = both(
        monkeypatch,
        program,
        sips,
        topology=variant_text(**MESH, **machine),
        record=turn % 2 == 0,
        data=turn % 5 != 0,
    )
    assert left(run.listed) == left(run.functions)
    assert run.only_one_has_lists


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("buffer_kind", ["tcm", "hbm"])
def test_all_collectives_of_a_ring_from_lists_leave_what_their_functions_leave(
    monkeypatch: pytest.MonkeyPatch, machine: str, buffer_kind: str
) -> None:
    def program(rank: int) -> list[np.ndarray]:
        dist.init_process_group("ahbm", algorithm="ring")
        return [all_of_them(range(3), 43)(rank)]

    run = both(
        monkeypatch,
        program,
        3,
        topology=variant_text(**MESH, **MACHINES[machine]),
        ccl=queues("ring", buffer_kind=buffer_kind, n_slots=4, slot_size=64),
        record=True,
    )
    assert left(run.listed) == left(run.functions)
    assert run.only_one_has_lists


@pytest.mark.parametrize(
    ("algorithm", "count", "waits"),
    [
        ("ring", 4, ("recv global_W", "pipelines/message_pipeline.py")),
        ("tree", 4, ("recv ", "exchange.py")),
        # More than the slots of a ring, from which rank 1 takes none.
        ("ring_naive", 100, ("send global_E", "algorithms/ring_naive.py")),
    ],
)
def test_a_deadlock_of_a_collective_from_a_list_names_the_line_of_its_kernel(
    monkeypatch: pytest.MonkeyPatch, algorithm: str, count: int, waits: tuple[str, str]
) -> None:
    def program(rank: int) -> None:
        dist.init_process_group("ahbm", algorithm=algorithm)
        tensor = torch.ones(count, dp=DPPolicy(num_cubes=1, num_pes=1))
        # The third call records lists.
        for turn in range(4):
            if rank != 1 or turn < 3:
                dist.all_reduce(tensor)

    ccl = queues(algorithm, n_slots=4, slot_size=64)
    error, of_functions = both(monkeypatch, program, 3, topology=variant_text(**MESH), ccl=ccl)
    assert left(error) == left(of_functions)
    assert isinstance(error, IpcqDeadlock)
    operation, file = waits
    assert operation in str(error)
    assert f"runtime/ccl/{file}:" in str(error)


def test_ranks_in_different_calls_are_named_as_by_functions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def program(rank: int) -> None:
        dist.init_process_group("ahbm", algorithm="ring")
        for turn in range(4):
            size = 8 + rank * (turn == 3)
            dist.all_reduce(torch.ones(size, dp=DPPolicy(num_cubes=1, num_pes=1)))

    error, of_functions = both(monkeypatch, program, 2, topology=variant_text(**MESH))
    assert left(error) == left(of_functions)
    assert isinstance(error, CollectiveMismatchError)


def test_equal_kernels_of_a_launch_have_one_list(monkeypatch: pytest.MonkeyPatch) -> None:
    recordings = list[str]()
    record = command_lists.recorded

    def counted(pe: Pe, launch: PeLaunch, *others: Any, **options: Any) -> KeyState:
        recordings.append(launch.name)
        return record(pe, launch, *others, **options)

    monkeypatch.setattr(command_lists, "recorded", counted)

    def program(rank: int) -> list[np.ndarray]:
        dist.init_process_group("ahbm", algorithm="ring")
        tensor = torch.ones((4, 300), dp=DPPolicy(cube="row_wise", pe="row_wise"))
        for _ in range(2):
            dist.all_reduce(tensor)
        return [tensor.numpy()]

    monkeypatch.setenv(FOLD, "1")
    run = simulate(program, 2, topology=variant_text(**MESH))
    # Two ranks with four PEs each call twice.
    assert recordings.count("all_reduce.ring") == 2
    assert run.done.kernels >= 16
