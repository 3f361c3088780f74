"""Kernels that exchange messages leave the same from lists and from their functions."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kernbench.benches.attention.queues import HYPERCUBE, with_hypercube
from kernbench.studies.llama70b_layer import study
from kernbench.studies.llama70b_layer.program import layer_program
from kernbench.studies.llama70b_layer.weights import random_inputs, random_weights
from runtime import DPPolicy, tl, torch
from runtime.core.config.config_file import default_file
from runtime.core.errors import IpcqDeadlock
from tests.integration.test_collective_lists import Outcomes, both
from tests.support.runs_left import left
from tests.support.topologies import variant_text
from tests.support.world import Simulation

LAUNCHES, SIZE = 6, 40
FOUR_PES: dict[str, Any] = {
    "sip__cube_mesh": {"w": 2, "h": 2},
    "cube__pe_layout__pe_per_corner": 1,
}
SPREAD = DPPolicy(cube="row_wise", pe="row_wise")
Kernel = Callable[..., object]


def swapped(x: tl.Pointer, factor: float) -> None:
    """Each PE adds the elements of other ones, whose numbers differ from its own in a bit."""
    pe, pes, cube = tl.program_id(0), tl.num_programs(0), tl.program_id(1)
    own = x + (cube * pes + pe) * SIZE
    value = tl.load(own, SIZE)
    for bit in range((pes - 1).bit_length()):
        tl.send(f"bit_{bit}", value)
        value = value + tl.recv(f"bit_{bit}", SIZE, tl.float32) * factor
    if pe % 2:
        value = value * 0.5
    # Neither the quotient of a multiple of the cube nor the rest, 1, is read.
    row, rest = divmod(cube * pes * 2 + pes + 1, pes)
    tl.store(own + (row - cube * 2 - rest), value)


def around(x: tl.Pointer, _: float) -> None:
    """One PE of each SIP passes a block to the next SIP, and takes part of it in place."""
    value = tl.load(x, SIZE)
    sent = tl.send_async("global_E", value)
    tl.store(x, tl.recv("global_W", SIZE, tl.float32) + value)
    sent.wait()


def silent(x: tl.Pointer, _: float) -> None:
    """A block that never comes."""
    if tl.program_id(1) != 2:
        tl.recv("bit_0", SIZE, tl.float32)


def launches(kernel: Kernel, placed: DPPolicy, queues: str | None) -> Callable[[int], Any]:
    def program(rank: int) -> list[np.ndarray]:
        torch.distributed.init_process_group("ahbm")
        elements = np.random.default_rng(rank).standard_normal(16 * SIZE).astype(np.float32)
        tensor = torch.from_numpy(elements, dp=placed)
        for number in range(LAUNCHES):
            torch.launch(kernel.__name__, kernel, tensor, 0.5 + number, queues=queues)
            torch.ahbm.synchronize()
        return [tensor.numpy()]

    return program


def on_one_sip(monkeypatch: pytest.MonkeyPatch, kernel: Kernel) -> Outcomes:
    return both(
        monkeypatch,
        launches(kernel, SPREAD, HYPERCUBE),
        1,
        topology=variant_text(**FOUR_PES),
        ccl=with_hypercube(default_file("ccl.yaml").read_text()),
    )


@pytest.mark.parametrize("machine", [{}, {"hbm__model": "banks", "noc__flow_control": "credits"}])
@pytest.mark.parametrize("record", [False, True])
@pytest.mark.parametrize(
    ("kernel", "placed", "queues"),
    [(swapped, SPREAD, HYPERCUBE), (around, DPPolicy(num_cubes=1, num_pes=1), None)],
)
def test_kernels_with_messages_from_lists_leave_what_their_functions_leave(
    monkeypatch: pytest.MonkeyPatch,
    kernel: Kernel,
    placed: DPPolicy,
    queues: str | None,
    record: bool,
    machine: dict[str, Any],
) -> None:
    run = both(
        monkeypatch,
        launches(kernel, placed, queues),
        2,
        topology=variant_text(**FOUR_PES, **machine),
        ccl=with_hypercube(default_file("ccl.yaml").read_text()),
        record=record,
        data=record or kernel is swapped,
    )
    assert left(run.listed) == left(run.functions)
    assert run.only_one_has_lists
    assert isinstance(run.listed, Simulation)
    # The state of queues is none that a template of a launch compares.
    assert run.listed.done.repeated_kernels == 0


def test_a_list_serves_all_cubes_where_a_kernel_reads_the_number_of_its_pe(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = on_one_sip(monkeypatch, swapped)
    assert isinstance(run.listed, Simulation)
    done = run.listed.done
    # The first PE, and the first one with each number since the second PE has been recorded, which
    # shows that the number is read: 2 and 3 in the first cube, 0 in the second one.
    assert done.kernels - done.listed_kernels == 4


def test_a_deadlock_of_a_list_is_that_of_its_function(monkeypatch: pytest.MonkeyPatch) -> None:
    run = on_one_sip(monkeypatch, silent)
    assert isinstance(run.functions, IpcqDeadlock)
    assert left(run.listed) == left(run.functions)


@pytest.mark.parametrize("tokens", [1, pytest.param(128, marks=pytest.mark.nightly)])
def test_a_decoder_layer_from_lists_leaves_what_its_functions_leave(
    monkeypatch: pytest.MonkeyPatch, tokens: int
) -> None:
    shape = study.SCALED_DOWN if tokens == 1 else study.prefill_of(study.SCALED_DOWN, tokens)
    program = layer_program(shape, 2, (random_weights(shape), random_inputs(shape)))

    def results(rank: int) -> list[np.ndarray]:
        run = program(rank)
        assert run.result is not None
        return [run.result, np.array(run.parts_ps)]

    run = both(
        monkeypatch,
        results,
        2,
        topology=variant_text(sip__cube_mesh=study.SCALED_CUBES),
        ccl=with_hypercube(default_file("ccl.yaml").read_text()),
        record=True,
    )
    assert left(run.listed) == left(run.functions)
    assert run.only_one_has_lists
