"""Scattered elements, masks, sets and orders of the device against those of the CPU; prints a line
for each case: its outcome and the operators on the host.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's convention
from outcomes import print_outcomes
from torch import Tensor

from kernbench.torch_backend.aten.operators import FALLBACKS

DRAW = torch.Generator().manual_seed(0)


def numbers(*shape: int) -> Tensor:
    return torch.randn(shape, generator=DRAW)


def columns(*shape: int, of: int) -> Tensor:
    return torch.randint(0, of, shape, generator=DRAW)


ROWS, GIVEN = numbers(20, 200), numbers(20, 150)
AT, ONCE = columns(20, 150, of=200), torch.rand(20, 200, generator=DRAW).argsort(1)[:, :150]
MASK = torch.rand(20, 200, generator=DRAW) > 0.6
LARGE = (numbers(20, 200) * 1000).long() * (1 << 40)
SMALL = columns(300, of=19) - 9
EMPTY, ALL = torch.zeros(3, 500, dtype=torch.bool), torch.ones(3, 500, dtype=torch.bool)
UNUSUAL = numbers(20, 37)
UNUSUAL[3, 5], UNUSUAL[3, 9], UNUSUAL[7, 2:], UNUSUAL[9] = torch.nan, torch.nan, torch.nan, -0.0
WIDE, FEW = numbers(5, 2100), columns(5, 2, of=2100)
FEW[1] = 7
LONG = torch.zeros(1, (1 << 26) + 100, dtype=torch.int8)
Case = Callable[..., object]


def reduced(how: str, *, include_self: bool) -> Case:
    return lambda x, i, s: x.scatter_reduce(1, i, s, how, include_self=include_self)


def written(x: Tensor, mask: Tensor) -> Tensor:
    y = x.clone()
    y[mask] = x[mask].flip(0)
    return y


def unique(x: Tensor) -> tuple[Tensor, ...]:
    return torch.unique(x.detach(), return_inverse=True, return_counts=True)


def runs(x: Tensor) -> tuple[Tensor, ...]:
    return torch.unique_consecutive(x.detach(), return_inverse=True, return_counts=True)


CASES: dict[str, tuple[Case, tuple[Tensor, ...]]] = {
    "scatter": (lambda x, i, s: x.scatter(1, i, s), (ROWS, ONCE, GIVEN)),
    "scatter to repeated columns": (lambda x, i, s: x.scatter(1, i, s), (ROWS, AT, GIVEN)),
    "scatter along rows": (
        lambda x, i, s: x.scatter(0, i.t(), s.t()),
        (ROWS.t().contiguous(), ONCE, GIVEN),
    ),
    "scatter of one element": (lambda x, i: x.scatter(1, i[:, :1], 2.5), (ROWS, AT)),
    "scatter of a number": (lambda x, i: x.scatter(1, i, 2.5), (ROWS, AT)),
    "scatter of fewer rows": (lambda x, i, s: x.scatter(1, i[:9], s[:9]), (ROWS, ONCE, GIVEN)),
    "scatter of bools": (lambda x, i: x.scatter(1, i, True), (MASK, AT)),
    "scatter of large integers": (lambda x, i: x.scatter(1, i, x[:, :150] + 1), (LARGE, ONCE)),
    "scatter of few to wide rows": (lambda x, i: x.scatter(1, i, x[:, :2] * 2), (WIDE, FEW)),
    "scatter of a number to wide rows": (
        lambda x, i: x.long().t().contiguous().t().scatter_(1, i, 3),
        (WIDE, FEW),
    ),
    "scatter beyond most comparisons": (lambda x, i: x.scatter(1, i, 3), (LONG, FEW[:1])),
    "scatter_add of few to wide rows": (
        lambda x, i: x.scatter_add(1, i[1:], x[1:, -2:]),
        (WIDE, FEW),
    ),
    "scatter_add of few to columns": (
        lambda x, i: x.bfloat16().t().scatter_add(0, i.t(), x[:, :2].bfloat16().t()),
        (WIDE, FEW),
    ),
    "gather of few from wide rows": (lambda x, i: x.gather(1, i), (WIDE, FEW)),
    "scatter_add": (lambda x, i, s: x.scatter_add(1, i, s), (ROWS, AT, GIVEN)),
    "scatter_add to a vector": (
        lambda x, i, s: x[0].scatter_add(0, i.view(-1)[:2900], s.view(-1)[:2900]),
        (ROWS, AT, GIVEN),
    ),
    "scatter_add of rows": (
        lambda x, i, s: x.scatter_add(0, (i[0, :, None] % 20).expand(150, 20), s.t()),
        (ROWS[:, :20], AT, GIVEN),
    ),
    "scatter_add of many rows": (
        lambda x, i: x.new_zeros(3600, 20).scatter_add(
            0, (i.view(-1)[:1000, None] * 17).expand(1000, 20), x.view(-1)[:1000, None] + x[0, :20]
        ),
        (ROWS, AT),
    ),
    "scatter_add of large integers": (
        lambda x, i: x.scatter_add(1, i, x[:, :150]),
        (LARGE, AT),
    ),
    "scatter_add of bytes": (
        lambda x, i: x.to(torch.int8).scatter_add(1, i, x[:, :150].to(torch.int8) * 9),
        (LARGE, AT),
    ),
    "scatter_add in bfloat16": (
        lambda x, i, s: x.bfloat16().scatter_add(1, i, s.bfloat16()),
        (ROWS, AT, GIVEN),
    ),
    "scatter_add in float64": (
        lambda x, i, s: x.double().scatter_add(1, i, s.double()),
        (ROWS, AT, GIVEN),
    ),
    **{
        f"scatter_reduce {how} {'with' if own else 'without'} the element": (
            reduced(how, include_self=own),
            (ROWS, AT, GIVEN),
        )
        for how in ("sum", "prod", "mean", "amax", "amin")
        for own in (True, False)
    },
    "scatter_reduce of integers": (
        lambda x, i: x.int().scatter_reduce(1, i, x[:, :150].int(), "amin", include_self=False),
        (LARGE >> 40, AT),
    ),
    "scatter_reduce of large integers": (
        lambda x, i: x.scatter_reduce(1, i, x[:, :150], "amin", include_self=False),
        (LARGE, AT),
    ),
    "scatter_add of 256 bools": (
        lambda m: (~m).scatter_add(0, torch.zeros_like(m, dtype=torch.int64), m)[:9],
        (ALL.view(-1)[:256],),
    ),
    "index_add of bools": (
        lambda m, i: m.index_add(1, i[0, :9], m[:, :9], alpha=-1),
        (MASK, AT),
    ),
    "index_add of integers": (
        lambda x, i: x.index_add(1, i[0], x[:, :150], alpha=3),
        (LARGE, AT),
    ),
    "index_add in float64": (
        lambda x, i: x.double().index_add(0, i[0, :90] % 20, x.double()[i[0, :90] % 7]),
        (ROWS, AT),
    ),
    "nonzero": (lambda m: m.nonzero(), (MASK,)),
    "nonzero of numbers": (lambda x: x.detach().nonzero(), (UNUSUAL,)),
    "nonzero of three axes": (lambda m: m.view(4, 5, 200).nonzero(), (MASK,)),
    "nonzero of nothing": (lambda m: m.nonzero(), (EMPTY,)),
    "nonzero of all": (lambda m: m.nonzero(), (ALL,)),
    "nonzero of a number": (lambda m: m[0, 0].nonzero(), (ALL,)),
    "nonzero as a tuple": (lambda m: m.nonzero(as_tuple=True), (MASK,)),
    "masked_select": (lambda x, m: x.masked_select(m), (ROWS, MASK)),
    "masked_select of NaN": (lambda x, m: x.masked_select(m[:, :37]), (UNUSUAL, MASK)),
    "masked_select of large integers": (lambda x, m: x.masked_select(m), (LARGE, MASK)),
    "masked_select of bools": (lambda m: m.masked_select(m.roll(1)), (MASK,)),
    "masked_select by a column": (lambda x, m: x.masked_select(m[:, :1]), (ROWS, MASK)),
    "masked_select of one number": (lambda x, m: x.detach()[0, 0].masked_select(m), (ROWS, MASK)),
    "elements by mask": (lambda x, m: x[m], (ROWS, MASK)),
    "rows by mask": (lambda x, m: x[m[:, 0]], (ROWS, MASK)),
    "elements written by mask": (written, (ROWS, MASK)),
    "masked_scatter": (lambda x, m, s: x.masked_scatter(m, s), (ROWS, MASK, ROWS + 1)),
    "equal": (lambda x: torch.tensor([torch.equal(x, x.clone()), torch.equal(x, x + 1)]), (ROWS,)),
    "equal of other shapes": (lambda x: torch.tensor(torch.equal(x, x[1:])), (ROWS,)),
    "isin": (lambda x: torch.isin(x, x[:3]), (SMALL,)),
    "isin inverted": (lambda x: torch.isin(x, x[:3], invert=True), (SMALL,)),
    "isin of a number": (lambda x: torch.isin(x, 3), (SMALL,)),
    "bincount": (lambda x: x.abs().bincount(minlength=30), (SMALL,)),
    "unique": (unique, (SMALL.view(30, 10),)),
    "unique numbers": (unique, (UNUSUAL[:3],)),
    "unique of runs": (runs, (SMALL.sort()[0],)),
    "sort of a long row": (lambda x: x.detach().view(-1)[:2900].sort(stable=True), (ROWS,)),
    "median": (lambda x: x.median(), (ROWS[:5],)),
    "median of rows": (lambda x: x.median(1), (ROWS[:, :99],)),
    "median with NaN": (lambda x: x.median(1), (UNUSUAL[:9],)),
    "median of numbers beside NaN": (lambda x: x.nanmedian(1), (UNUSUAL[:9],)),
    "median of integers": (lambda x: x.view(30, 10).median(0, keepdim=True)[0], (SMALL,)),
    "kthvalue": (lambda x: x.kthvalue(5, 0), (ROWS[:, :99],)),
    "one hot of many": (lambda i: F.one_hot(i[:4], 300), (AT,)),
}


def compare(name: str) -> str:
    """The gradients and the results of a case on both devices."""
    function, operands = CASES[name]
    outcomes = list[list[Tensor]]()
    for device in ("cpu", "ahbm"):
        own = [each.to(device).detach() for each in operands]
        leaves = [each.requires_grad_() for each in own if each.is_floating_point()]
        given = function(*own)
        results = list(given) if isinstance(given, tuple) else [given]
        if results[0].requires_grad and results[0].numel():
            weights = torch.linspace(-1, 2, results[0].numel()).view(results[0].shape)
            results[0].backward(weights.to(device, results[0].dtype))
        gradients = [each.grad for each in leaves if each.grad is not None]
        outcomes.append([each.detach().cpu() for each in (*results, *gradients)])
    for expected, actual in zip(*outcomes, strict=True):
        # Elements that are moved are equal; sums and products have another order, and bfloat16
        # another rounding.
        is_summed = any(each in name for each in ("add", "mean", "sum", "prod"))
        share = 0 if not is_summed else 2e-2 if expected.dtype == torch.bfloat16 else 5e-6
        torch.testing.assert_close(actual, expected, rtol=share, atol=share, equal_nan=True)
    return "ok"


if __name__ == "__main__":
    print_outcomes(CASES, compare, FALLBACKS)
