"""Habits of Triton and CUDA: each error names what to write here."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kernbench.simulation import simulate
from runtime import mock, tl, torch
from runtime.core.errors import KernelError
from runtime.language.other_languages import NAMES, program_hint
from tests.support.topologies import variant_text

language: Any = tl
ONE_PE = variant_text(sip__cube_mesh={"w": 1, "h": 1}, cube__pe_layout__pe_per_corner=1)


def problem(kernel: Callable[..., object]) -> str:
    with pytest.raises(KernelError) as raised:
        mock.launch(kernel, np.zeros(64, np.float32))
    # The line is that of the call in the kernel.
    assert raised.value.line.partition(":")[0].endswith("test_other_languages.py")
    return raised.value.problem


@pytest.mark.parametrize(
    ("kernel", "text"),
    [
        (lambda x: language.load(x, 8, mask=None), "tl.load(p + start, min(BLOCK, n - start))"),
        (lambda x: language.load(x, mask=None), "no argument 'mask': a block is exact"),
        (lambda x: language.load(x, 8, other=0.0), "no argument 'other': no element is masked"),
        (lambda x: language.load_async(x, 8, mask=1), "tl.load_async has no argument 'mask'"),
        (
            lambda x: language.store(x, tl.load(x, 8), mask=None),
            "tl.store(p + start, x[: min(BLOCK, n - start)])",
        ),
        (lambda x: language.load(x, 8, eviction_policy=""), "there are no caches; leave it out"),
        (lambda x: language.load(x, 8, blck=3), "its arguments are pointer, shape, strides=None"),
        (lambda x: 2 * language.load(x), "missing 1 required positional argument: 'shape'"),
        (lambda x: language.exp(x, 1, 2, 3), "its arguments are x"),
        (lambda x: language.dot(x, x, input_precision="ieee"), "leave it out"),
        (lambda x: language.load(x + tl.arange(0, 8)), "there are no blocks of addresses"),
    ],
)
def test_an_argument_that_does_not_exist_has_advice(
    kernel: Callable[..., object], text: str
) -> None:
    assert text in problem(kernel)


def test_the_error_of_a_function_of_the_user_stays_as_it_is() -> None:
    def own(value: int) -> int:
        return value

    load: Any = own
    load.__name__ = load.__qualname__ = "load"
    with pytest.raises(TypeError, match=r"^load\(\) got an unexpected keyword argument 'mask'$"):
        mock.launch(lambda x: load(x, mask=1), np.zeros(4, np.float32))


@pytest.mark.parametrize("name", sorted(NAMES))
def test_a_name_that_does_not_exist_has_advice(name: str) -> None:
    with pytest.raises(AttributeError) as raised:
        getattr(language, name)
    assert str(raised.value) == f"kernbench's tl has no {name}: {NAMES[name]}"


def test_another_name_has_the_nearest_one() -> None:
    with pytest.raises(AttributeError, match=r"tl has no sofmax; did you mean 'softmax'\?"):
        _ = language.sofmax


def add(x: tl.Pointer, n: int) -> None:
    tl.store(x, tl.load(x, n) + 1)


def test_a_launch_in_brackets_has_the_launch_of_this_language_as_a_note() -> None:
    kernel: Any = add

    def program(_rank: int) -> None:
        kernel[(1,)](torch.empty(4), 4)

    with pytest.raises(TypeError) as raised:
        simulate(program, 1, topology=ONE_PE)
    (note,) = raised.value.__notes__
    assert note.startswith("a kernel is launched with torch.launch(name, kernel, x, y, n, grid=")


def test_an_import_of_triton_names_the_language() -> None:
    error = ModuleNotFoundError("No module named 'triton'", name="triton")
    assert program_hint(error) == (
        "kernbench has no triton: make setup-triton runs its kernels; others have `from kernbench "
        "import tl`"
    )
    assert program_hint(ModuleNotFoundError("no", name="other")) is None


@pytest.mark.parametrize(
    ("option", "text"),
    [
        ("n", "passed by position"),
        ("num_warps", "a PE has no warps; leave it out"),
        ("stream", "the keywords are queues and grid"),
    ],
)
def test_a_keyword_of_a_launch_that_does_not_exist_has_advice(option: str, text: str) -> None:
    launch: Any = torch.launch

    def program(_rank: int) -> None:
        launch("add", add, torch.empty(4), 4, **{option: 4})

    with pytest.raises(TypeError) as raised:
        simulate(program, 1, topology=ONE_PE)
    assert str(raised.value).startswith(f"launch of 'add': unexpected keyword {option!r}; ")
    assert text in str(raised.value)
