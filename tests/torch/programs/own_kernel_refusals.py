"""Kernels and calls that are refused; prints a line for each case: its name, and the error. With
`fails` as its argument, a kernel ends the run.
"""

import sys
from collections.abc import Callable
from typing import Any

import torch

import kernbench
from kernbench import tl


def copied(x: tl.Pointer, y: tl.Pointer, count: int) -> None:
    tl.store(y, tl.load(x, count))


def without_types(x, y, count):
    copied(x, y, count)


def of_text(x: "pointer", y: tl.Pointer, count: int) -> None:  # noqa: F821
    copied(x, y, count)


def by_keyword(x: tl.Pointer, y: tl.Pointer, *, count: int) -> None:
    copied(x, y, count)


def of_numbers(y: tl.Pointer, count: int) -> None:
    tl.store(y, tl.zeros(count, y.dtype))


SIZES: dict[str, Any] = {"sizes": {"count": lambda x: x.numel()}}
copy = kernbench.kernel("own::copied", outputs="y", **SIZES)(copied)


@kernbench.kernel("own::changed", mutates_args="x", **SIZES)
def changed(x: tl.Pointer, count: int) -> None:
    tl.store(x, tl.load(x, count) * 2)


@kernbench.kernel("own::biased", outputs="y", placement="bias", **SIZES)
def biased(x: tl.Pointer, bias: tl.Pointer | None, y: tl.Pointer, count: int) -> None:
    del bias
    copied(x, y, count)


@kernbench.kernel("own::in_parts", outputs="y", grid=lambda parts: (parts, 2), **SIZES)
def in_parts(x: tl.Pointer, y: tl.Pointer, parts: int, count: int) -> None:
    del parts
    copied(x, y, count)


@kernbench.kernel("own::too_long", outputs="y", grid=lambda: (1,), **SIZES)
def too_long(x: tl.Pointer, y: tl.Pointer, count: int) -> None:
    tl.store(y + 1, tl.load(x, count))


def made(kernel: Callable[..., None], name: str = "own::x", **options: Any) -> Callable[[], object]:
    return lambda: kernbench.kernel(name, **options)(kernel)


def without_gradient() -> None:
    copy(torch.ones(8, device="ahbm", requires_grad=True)).sum().backward()


CASES: dict[str, Callable[[], object]] = {
    "a name alone": made(copied, "copied", outputs="y", **SIZES),
    "an output that is no parameter": made(copied, outputs="z", **SIZES),
    "an output that is a number": made(copied, outputs=("y", "count")),
    "no output": made(copied, **SIZES),
    "a changed tensor that is a result": made(copied, outputs="y", mutates_args="y", **SIZES),
    "no types": made(without_types, outputs="y", **SIZES),
    "a type without a meaning": made(of_text, outputs="y", **SIZES),
    "a parameter by keyword": made(by_keyword, outputs="y", **SIZES),
    "no tensor": made(of_numbers, outputs="y"),
    "a size of a result": made(copied, outputs="y", sizes={"count": lambda y: y.numel()}),
    "a grid of sizes": made(copied, outputs="y", grid=lambda count: (count,), **SIZES),
    "a placement by a number": made(copied, outputs="y", placement="count", **SIZES),
    "complex numbers": lambda: copy(torch.ones(8, dtype=torch.complex64, device="ahbm")),
    "a tensor of the CPU": lambda: copy(torch.ones(8)),
    "tensors of two devices": lambda: biased(torch.ones(8, device="ahbm"), torch.ones(8)),
    "a changed tensor with gaps": lambda: changed(torch.ones(8, 8, device="ahbm")[:, :2]),
    "no tensor at the placement": lambda: biased(torch.ones(8, device="ahbm"), None),
    "an empty grid": lambda: in_parts(torch.ones(8, device="ahbm"), 0),
    "a number in place of a tensor": lambda: copy(2.0),
    "no gradient": without_gradient,
}


if __name__ == "__main__":
    if "fails" in sys.argv[1:]:
        too_long(torch.ones(4096, device="ahbm"))
        torch.ahbm.synchronize()
    for case, call in CASES.items():
        try:
            call()
            outcome = "not refused"
        except Exception as error:  # noqa: BLE001 - the outcome of the case
            outcome = f"{type(error).__name__}: {error}"
        print(f"{case} | {outcome}", flush=True)
