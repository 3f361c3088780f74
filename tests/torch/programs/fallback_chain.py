"""Operators without a kernel, by the stage of the chain that computes them; prints a line for each
case: what differs from a CPU, and the operators that were decomposed or ran on the host.

    fallback_chain.py [CASE ...]
"""

import sys
from collections.abc import Callable

import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's convention
from torch import Tensor
from torch._decomp import decomposition_table

from kernbench.torch_backend.aten.operators import (
    DECOMPOSED,
    FALLBACKS,
    LAUNCHES,
    UNPORTABLE,
    report,
)
from runtime.device.rank.rank_state import running_rank

DEVICE = "ahbm"
GENERATOR = torch.Generator().manual_seed(1)
_NEAR_0 = torch.tensor([1e-30, -1e-30, 1e-10, -1e-10, 1e-6, -1e-6, 1e-3, -1e-3, 0.1, -0.1])
_ALL = torch.cat([_NEAR_0, torch.tensor([0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 3.0, -3.0, 20.0, -20.0])])
_FUNCTIONS = (
    *("log1p", "expm1", "sinh", "cosh", "tan", "asin", "acos", "atan", "asinh", "acosh", "atanh"),
    *("erfc", "erfinv", "log10", "trunc", "frac"),
)
CASES: dict[str, Callable[[], object]] = {}


def case(function: Callable[[], object]) -> Callable[[], object]:
    CASES[function.__name__.replace("_", " ")] = function
    return function


def operator(schema: str, function: Callable[..., Tensor], **decomposed: Callable) -> None:
    """An operator with a kernel for a CPU, and a decomposition."""
    name = schema.partition("(")[0]
    LIBRARY.define(schema)
    LIBRARY.impl(name, function, "CPU")
    for other, decomposition in decomposed.items():
        decomposition_table[getattr(torch.ops.chain, other).default] = decomposition


def call(name: str) -> Callable[[Tensor], Tensor]:
    """An operator that is defined when it is called."""

    def of(x: Tensor) -> Tensor:
        return getattr(torch.ops.chain, name)(x)

    return of


def numbers(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(shape, generator=GENERATOR).to(dtype)


def differs(function: Callable[..., Tensor], *given: object) -> str:
    """The greatest difference from a CPU, in parts of the largest element."""
    own, expected = (
        function(*(each.to(device) if isinstance(each, Tensor) else each for each in given))
        for device in (DEVICE, "cpu")
    )
    own = own.cpu()
    if own.dtype != expected.dtype or own.shape != expected.shape:
        return f"{own.dtype} of {list(own.shape)}, not {expected.dtype} of {list(expected.shape)}"
    difference = (own.double() - expected.double()).abs().max().item()
    return "equal" if difference <= 1e-6 * expected.double().abs().max().item() else "other results"


LIBRARY = torch.library.Library("chain", "DEF")


@case
def precision() -> list[str]:
    """Functions whose error is above 4 units of the last place, near 0 and elsewhere."""
    wrong = []
    for name in _FUNCTIONS:
        function = getattr(torch, name)
        exact, own = function(_ALL.double()), function(_ALL.to(DEVICE)).cpu().double()
        finite = exact.isfinite()
        error = ((own - exact).abs() / exact.abs().clamp_min(1e-37))[finite].max().item()
        if error > 4 * 2**-23 or not torch.equal(own[~finite].isnan(), exact[~finite].isnan()):
            wrong.append(f"{name} {error}")
    return wrong


@case
def formula() -> str:
    x = numbers(7, 13)
    return differs(lambda x: torch.prod(x, 1), x)


@case
def decomposition() -> str:
    return differs(F.hardswish, numbers(5, 9))


@case
def circular() -> str:
    operator(
        "circle(Tensor x) -> Tensor",
        lambda x: x + 1,
        circle=lambda x: torch.ops.chain.circle(x * 1) * 1,
    )
    return differs(torch.ops.chain.circle, numbers(4))


@case
def circular_by_another() -> str:
    operator("first(Tensor x) -> Tensor", lambda x: x + 1, first=call("second"))
    operator("second(Tensor x) -> Tensor", lambda x: x + 1, second=call("first"))
    return differs(torch.ops.chain.first, numbers(4))


@case
def given_up_once() -> list[int]:
    """The launches of three calls of a circular operator, the last one of another shape."""
    operator(
        "round(Tensor x) -> Tensor",
        lambda x: x + 1,
        round=lambda x: torch.ops.chain.round(x * 1),
    )
    counts = []
    for x in (torch.ones(length, device=DEVICE) for length in (7, 7, 9)):
        before = running_rank().launches
        torch.ops.chain.round(x)
        counts.append(running_rank().launches - before)
    return counts


@case
def item() -> str:
    def read(x: Tensor) -> Tensor:
        return x * 2 if x.sum().item() > 1e9 else x

    operator("choose(Tensor x) -> Tensor", lambda x: x - 1, choose=read)
    return differs(torch.ops.chain.choose, numbers(6))


@case
def part_on_the_host() -> str:
    operator(
        "partly(Tensor x) -> Tensor",
        lambda x: torch.special.airy_ai(x * 2),
        partly=lambda x: torch.special.airy_ai(x * 2),
    )
    return differs(torch.ops.chain.partly, numbers(6))


@case
def rounded_once() -> list[float]:
    """A sum whose terms of 16 bits would be lost."""
    operator(
        "carry(Tensor x) -> Tensor",
        lambda x: ((x.float() + 256) - 256).to(x.dtype),
        carry=lambda x: (x + 256) - 256,
    )
    x = torch.tensor([0.5, 0.25, 1.5], dtype=torch.bfloat16, device=DEVICE)
    result = torch.ops.chain.carry(x)
    assert result.dtype == torch.bfloat16
    return result.tolist()


@case
def out() -> str:
    x = numbers(4, 6)
    given = torch.empty(0, device=DEVICE)
    result = torch.renorm(x.to(DEVICE), 2, 0, 1.0, out=given)
    assert result is given
    return differs(
        lambda own: given if own.device.type == DEVICE else torch.renorm(own, 2, 0, 1.0), x
    )


@case
def out_of_another_type() -> str:
    try:
        x = torch.ones(2, 2, device=DEVICE)
        torch.renorm(x, 2, 0, 1.0, out=torch.empty(2, 2, dtype=torch.int64, device=DEVICE))
    except RuntimeError as error:
        return str(error)
    return "no error"


@case
def in_place() -> str:
    x = numbers(5, 5)
    own = x.to(DEVICE)
    view = own[1:4]
    assert F.hardtanh(view, -0.5, 0.5, inplace=True) is view
    x[1:4].clamp_(-0.5, 0.5)
    return "equal" if torch.equal(own.cpu(), x) else "other results"


@case
def in_place_of_another_shape() -> str:
    operator("grow(Tensor x) -> Tensor", torch.clone, grow=lambda x: torch.cat([x, x]))
    operator("grow_(Tensor(a!) x) -> Tensor(a!)", lambda x: x)
    try:
        torch.ops.chain.grow_(torch.ones(3, device=DEVICE))
    except RuntimeError as error:
        return str(error)
    return "no error"


@case
def own_memory() -> list[float]:
    """A decomposition that returns its operand."""
    operator("same(Tensor x) -> Tensor", torch.clone, same=lambda x: x)
    x = torch.ones(2, device=DEVICE)
    torch.ops.chain.same(x).add_(1)
    return x.tolist()


@case
def autocast() -> str:
    x = numbers(6)
    with torch.autocast(DEVICE, torch.bfloat16):
        return str(F.hardswish(x.to(DEVICE)).dtype)


@case
def gradient() -> str:
    def slope(x: Tensor) -> Tensor:
        own = x.clone().requires_grad_()
        F.mish(F.hardswish(own)).sum().backward()
        return own.grad

    return differs(slope, numbers(5, 4))


@case
def gradient_of_a_decomposition() -> str:
    def slopes(image: Tensor, grid: Tensor) -> Tensor:
        operands = [each.clone().requires_grad_() for each in (image, grid)]
        result = F.grid_sample(*operands, align_corners=False)
        parts = torch.autograd.grad(result.square().sum(), operands)
        return torch.cat([each.reshape(-1) for each in parts])

    places = torch.rand(1, 3, 3, 2, generator=GENERATOR) * 2.4 - 1.2
    return differs(slopes, numbers(1, 2, 4, 5), places)


@case
def wider_type() -> str:
    x = numbers(9, dtype=torch.bfloat16)
    own = torch.special.airy_ai(x.to(DEVICE)).cpu()
    expected = torch.special.airy_ai(x.float()).to(torch.bfloat16)
    return "equal" if torch.equal(own, expected) else "other results"


@case
def counts_of_integers() -> list[int]:
    x = torch.tensor([0, 1, 1, 5, 7, 7, 7, 9], dtype=torch.int32, device=DEVICE)
    counts = torch.histc(x, bins=8, min=0, max=7)
    assert counts.dtype == torch.int32
    return counts.tolist()


@case
def limits_of_bfloat16() -> list[float]:
    x = torch.tensor([float("inf"), float("-inf"), float("nan")], dtype=torch.bfloat16)
    own, expected = torch.nan_to_num(x.to(DEVICE)).tolist(), torch.nan_to_num(x).tolist()
    return [a - b for a, b in zip(own, expected, strict=True)]


@case
def integers() -> list[str]:
    """Functions of integers with other results than those of a CPU."""
    wrong = []
    for dtype in (torch.int64, torch.int32, torch.int8, torch.uint8):
        limits = torch.iinfo(dtype)
        low = max(limits.min, -20)
        a = torch.randint(low, 20, (50,), generator=GENERATOR).to(dtype)
        a[:4] = torch.tensor([limits.max, limits.min, limits.max - 1, limits.min + 1])
        b = torch.randint(1, 9, (50,), generator=GENERATOR).to(dtype)
        b[:4] = torch.tensor([1, 2, limits.max, limits.max - 1])
        signed = b if low == 0 else b * torch.where(a % 2 == 0, -1, 1).to(dtype)
        functions = {
            **{name: (getattr(torch, name), (a,)) for name in ("round", "floor", "ceil", "trunc")},
            **{name: (getattr(torch, name), (a,)) for name in ("isneginf", "isposinf", "signbit")},
            **{name: (getattr(torch, name), (a, signed)) for name in ("fmod", "remainder")},
            **{name: (getattr(torch, name), (a, b)) for name in ("floor_divide", "pow")},
            "numbers that wrap round": (lambda x: torch.add(x, x, alpha=-3) * 300 + 70000, (b,)),
            "pow of a negative": (torch.pow, (a.clamp(low // 10, 2), signed)),
            "pow of numbers": (lambda x: x**5 + x**0 + 3**x, (b.clamp(0, 4),)),
            "towards 0": (lambda x, y: torch.div(x, y, rounding_mode="trunc"), (a, signed)),
        }
        wrong += [
            f"{name} of {dtype}"
            for name, (function, given) in functions.items()
            if not torch.equal(
                function(*(each.to(DEVICE) for each in given)).cpu(), function(*given)
            )
        ]
    return wrong


@case
def complex_numbers() -> list[str]:
    x = torch.complex(numbers(3, 4), numbers(3, 4))
    functions = {
        "sum of a number": (torch.sum, (x[0, 0],)),
        "logarithm of a sum": (lambda x: torch.logsumexp(x, 0), (x,)),
        "large": (torch.abs, (x * 1e30,)),
        "product": (lambda x: torch.prod(x, 0), (x,)),
        "angle": (torch.angle, (x,)),
    }
    return [
        name
        for name, (function, given) in functions.items()
        if not torch.allclose(
            function(*(each.to(DEVICE) for each in given)).cpu(), function(*given)
        )
    ]


@case
def shifts() -> list[str]:
    wrong = []
    for dtype in (torch.int64, torch.int32):
        x = torch.tensor(
            [1, -1, 5, -7, torch.iinfo(dtype).min, torch.iinfo(dtype).max], dtype=dtype
        )
        for places in (0, 1, 7, 8 * dtype.itemsize - 1):
            for function in (torch.bitwise_left_shift, torch.bitwise_right_shift):
                own = function(x.to(DEVICE), places).cpu()
                if not torch.equal(own, function(x, places)):
                    wrong.append(f"{function.__name__} of {dtype} by {places}")
    return wrong


@case
def parts_of_numbers() -> list[str]:
    x = torch.tensor([0.0, -0.0, 1e-45, -1.5, 8.0, 7.9999995, 3e38, float("inf"), 0.5])
    a = torch.tensor([0, 0, 12, -18, 35, 2**40, 1, 97, -1])
    b = torch.tensor([0, 5, 18, 12, 64, 6**14, 10**12, 89, -1])
    parts = [*zip(torch.frexp(x.to(DEVICE)), torch.frexp(x), strict=True)]
    parts += [
        (function(a.to(DEVICE), b.to(DEVICE)), function(a, b))
        for function in (torch.gcd, torch.lcm)
    ]
    return [str(own) for own, expected in parts if not torch.equal(own.cpu(), expected)]


@case
def rests_of_fractions() -> list[str]:
    """Rests of numbers near a multiple of the divisor: a rounded quotient is one too great."""
    a, b = torch.tensor([1.0, 5.3, 1e9, -1e9, 6.0]), torch.tensor([0.1, 0.1, 7.3, 7.3, -0.2])
    return [
        name
        for name in ("fmod", "remainder", "floor_divide")
        if not torch.equal(
            getattr(torch, name)(a.to(DEVICE), b.to(DEVICE)).cpu(), getattr(torch, name)(a, b)
        )
    ]


@case
def random() -> str:
    torch.empty(3, device=DEVICE).cauchy_()
    return "drawn"


@case
def without_data() -> str:
    x = torch.ones(64, 64, device=DEVICE)
    F.hardswish(x)
    torch.log1p(x).prod(1)
    torch.ahbm.synchronize()
    return f"{torch.ahbm.now_ns():.3f}"


@case
def host_without_data() -> str:
    return str(torch.special.airy_ai(torch.ones(3, device=DEVICE)).shape)


def main() -> None:
    chosen = sys.argv[1:] or [name for name in CASES if "data" not in name]
    for name in chosen:
        DECOMPOSED.clear()
        FALLBACKS.clear()
        UNPORTABLE.clear()
        result = CASES[name]()
        listed = " ".join(sorted(DECOMPOSED)), " ".join(sorted(FALLBACKS))
        print(f"= {name} | {result} | {listed[0]} | {listed[1]} | {' '.join(sorted(UNPORTABLE))}")
    DECOMPOSED.clear()
    LAUNCHES.clear()
    F.hardtanh(torch.ones(3, device=DEVICE))
    print(report())


main()
