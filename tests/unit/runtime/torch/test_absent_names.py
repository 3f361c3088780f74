"""Names of PyTorch that kernbench lacks, and misspelt ones: the error names what exists."""

import re
from types import ModuleType

import pytest

from kernbench import tl, torch
from runtime.torch.absent import ADVICE, absent_in_tensor

TYPES = (
    "torch.float16, torch.bfloat16, torch.float32, torch.int8, torch.int32, torch.int64, "
    "torch.uint8, torch.bool, torch.float64, torch.float8_e4m3fn, torch.float8_e5m2"
)


@pytest.mark.parametrize(
    ("module", "name", "message"),
    [
        (
            torch,
            "normal",
            (
                "kernbench's torch has no normal; make the values with numpy and "
                "torch.from_numpy(...) or torch.tensor(...)"
            ),
        ),
        (
            torch,
            "einsum",
            (
                "kernbench's torch has no einsum; compute in a kernel started with "
                "torch.launch(name, kernel, ...), or in numpy with tensor.numpy()"
            ),
        ),
        (torch, "int16", f"kernbench's torch has no int16; the element types are {TYPES}"),
        (
            torch,
            "cuda",
            "kernbench's torch has no cuda; the device is torch.ahbm, and every tensor is on it",
        ),
        (
            torch,
            "nn",
            (
                "kernbench's torch has no nn; kernbench runs kernels and collectives, and has "
                "neither modules nor gradients"
            ),
        ),
        (torch, "reshape", "kernbench's torch has no reshape; tensors have it: x.reshape"),
        (torch, "zeroes", "kernbench's torch has no zeroes; did you mean 'zeros'?"),
        (
            torch.distributed,
            "gatherr",
            "kernbench's torch.distributed has no gatherr; did you mean 'gather'?",
        ),
        (
            torch.ahbm,
            "device_counts",
            "kernbench's torch.ahbm has no device_counts; did you mean 'device_count'?",
        ),
        (
            torch.accelerator,
            "synchronise",
            "kernbench's torch.accelerator has no synchronise; did you mean 'synchronize'?",
        ),
        (
            torch.multiprocessing,
            "Process",
            "kernbench's torch.multiprocessing has no Process; did you mean 'ProcessException'?",
        ),
        (tl, "tanhh", "kernbench's tl has no tanhh; did you mean 'tanh'?"),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) < 20 else "",
)
def test_a_name_that_does_not_exist_is_an_attribute_error_with_what_exists(
    module: ModuleType, name: str, message: str
) -> None:
    with pytest.raises(AttributeError, match=f"^{re.escape(message)}$"):
        getattr(module, name)


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        (
            "backward",
            "kernbench runs kernels and collectives, and has neither modules nor gradients",
        ),
        ("cuda", "the device is torch.ahbm, and every tensor is on it"),
        ("permute", "x.t() transposes a matrix; other orders of axes are left to kernels"),
        ("reshapee", "did you mean 'reshape'?"),
    ],
)
def test_a_tensor_gives_the_same_advice(name: str, advice: str) -> None:
    error = absent_in_tensor(name, dir(torch.Tensor))
    assert str(error) == f"kernbench's Tensor has no {name}; {advice}"


def test_no_name_with_advice_exists() -> None:
    for names in ADVICE.values():
        for name in names.split():
            assert name not in torch.__all__, name


def test_every_name_without_a_near_one_lists_the_public_names() -> None:
    with pytest.raises(AttributeError, match="has no xyzzy; known: DPPolicy, Generator, Tensor"):
        torch.xyzzy  # noqa: B018
    assert not hasattr(torch, "xyzzy")


@pytest.mark.parametrize(
    "module",
    [torch, torch.distributed, torch.ahbm, torch.accelerator, torch.multiprocessing, tl],
    ids=lambda module: module.__name__,
)
def test_every_public_name_exists(module: ModuleType) -> None:
    for name in module.__all__:
        assert getattr(module, name) is not None
