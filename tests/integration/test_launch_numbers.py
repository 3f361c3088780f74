"""Launches that differ in their numbers: which are repeated, and with which records and values."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from runtime import tl, torch
from runtime.core.compiled.choice import IS_COMPILED
from sip_node.programs.lists import command_lists
from tests.support.repeated_launches import PES, SIZE, Program, compared, own_start, tensor

pytestmark = pytest.mark.skipif(not IS_COMPILED, reason="launches are repeated by the core in C")


def with_numbers(kernel: Callable[..., None], numbers: Sequence[float]) -> Program:
    """A program that waits for a launch of a kernel with each number."""

    def program() -> Sequence[torch.Tensor]:
        x, y = tensor(), tensor()
        torch.ahbm.synchronize()
        for number in numbers:
            torch.launch("kernel", kernel, x, y, SIZE, number)
            torch.ahbm.synchronize()
        return x, y

    return program


def weighted(x: tl.Pointer, y: tl.Pointer, size: int, weight: float) -> None:
    value = tl.load(own_start(x, size), size)
    mixed = tl.fused(lambda each: each * weight + (1.0 - weight), value)
    tl.store(
        own_start(y, size),
        tl.where(value > weight, mixed, weight) + tl.full(size, weight, tl.float32),
    )


def signed(x: tl.Pointer, y: tl.Pointer, size: int, factor: float) -> None:
    value = tl.load(own_start(x, size), size)
    tl.store(own_start(y, size), value * factor if factor > 0 else value + factor)


def shifted(x: tl.Pointer, y: tl.Pointer, size: int, distance: float) -> None:
    tl.store(own_start(y, size), tl.load(own_start(x, size), size) - distance)


NUMBERS = 0.5, 0.25, 0.0, -0.0, 0.1, np.inf, np.nan, 5e-324


@pytest.mark.parametrize("record", [True, False], ids=["records", "no-records"])
def test_a_launch_with_other_numbers_is_repeated_with_their_values(
    monkeypatch: pytest.MonkeyPatch, *, record: bool
) -> None:
    done = compared(monkeypatch, with_numbers(weighted, NUMBERS), record=record).done
    assert done.repeated_kernels == (len(NUMBERS) - 2) * PES


def test_a_number_on_which_the_commands_depend_makes_another_launch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The first launch shows that the number is read, so that it counts for none.
    numbers = 0.5, *(0.5, -1.0, 2.0) * 4
    done = compared(monkeypatch, with_numbers(signed, numbers), record=True).done
    assert done.repeated_kernels == 3 * 2 * PES


def test_a_launch_in_which_a_pe_has_run_its_function_is_not_recorded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The list of one kernel is dropped for that of the other, in turn.
    monkeypatch.setattr(command_lists, "MOST_COMMANDS", 10)

    def program() -> Sequence[torch.Tensor]:
        x, y = tensor(), tensor()
        for number in NUMBERS:
            for kernel in (weighted, shifted):
                torch.launch("kernel", kernel, x, y, SIZE, number)
                torch.ahbm.synchronize()
        return x, y

    done = compared(monkeypatch, program).done
    assert (done.listed_kernels, done.repeated_kernels) == (2 * len(NUMBERS) * (PES - 1), 0)
