"""Operators along an axis, by an index, of segments, bags and grids on the device against those of
the CPU; prints a line for each case: its outcome and the operators on the host.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's convention
from outcomes import print_outcomes
from torch import Tensor

from kernbench.torch_backend.aten.operators import FALLBACKS

DRAW = torch.Generator().manual_seed(3)


def numbers(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(shape, generator=DRAW, dtype=dtype)


X, SOURCE, NUMBER = numbers(4, 6), numbers(4, 5), numbers()
# Each row has a column twice or more.
INDEX = torch.tensor([[0, 2, 2, 5, 2], [3, 3, 3, 3, 3], [1, 0, 1, 0, 1], [5, 4, 3, 2, 5]])
ROWS, FIRST = torch.tensor([1, 3, 1, 0, 1]), torch.tensor([0])
LONG = torch.randint(-9, 9, (4, 6), generator=DRAW)
GIVEN = torch.randint(-9, 9, (4, 5), generator=DRAW)
LIMITS = torch.tensor([2**63 - 1, -(2**63), 5, 2**60 + 1])
COMPLEX = torch.complex(X, numbers(4, 6))
EQUAL = torch.randint(0, 3, (7, 9), generator=DRAW).float()
ZEROS = SOURCE * (numbers(4, 5) > 0)
UNUSUAL = torch.tensor([0.0, -0.0, 1e-45, -1e-45, 1.0, -2.0, 3.4e38, torch.inf, -torch.inf])
TABLE, BAGS = numbers(9, 5), torch.tensor([3, 3, 0, 8, 7, 3, 1])
STARTS = torch.tensor([0, 0, 3, 7])
IMAGE, VOLUME = numbers(2, 3, 5, 6), numbers(2, 3, 4, 5, 3)
GRID, SPACE = 1.7 * numbers(2, 4, 3, 2), 1.7 * numbers(2, 2, 3, 2, 3)
GRID[0, 0] = torch.tensor([[-1.0, 1.0], [1.0, 1.0], [0.0, -1.0]])
WIDE = numbers(2, 300_007)
Case = Callable[..., Any]


def by_index(how: str, *, includes: bool = True) -> Case:
    return lambda x, i, y: x.scatter_reduce(1, i, y, how, include_self=includes)


def of_rows(how: str, *, includes: bool = True) -> Case:
    return lambda x, i, y: x.t().index_reduce(0, i, y.t(), how, include_self=includes)


def of_segments(how: str, axis: int = 0, **options: Any) -> Case:
    return lambda x, n: torch.segment_reduce(x, how, lengths=n, axis=axis, **options)


def of_bags(mode: str, **options: Any) -> Case:
    return lambda x, i, n: F.embedding_bag(i, x, n, mode=mode, **options)


def sampled(mode: str, padding: str, *, aligned: bool = False) -> Case:
    return lambda x, grid: F.grid_sample(x, grid, mode, padding, align_corners=aligned)


def of_all(x: Tensor, i: Tensor, y: Tensor) -> list[Tensor]:
    """Operators along the axis of a number."""
    moved = [x.gather(0, i), x.gather(0, i[0]), x.scatter(0, i[0], y), x.scatter(0, i, 2.5)]
    moved += [x.scatter_add(0, i[0], y), x.scatter_reduce(0, i[0], y, "prod")]
    found = [x.topk(1), x.kthvalue(1), x.median(0), x.nanmedian(0), x.max(0), x.min(0), x.mode()]
    return [*moved, *(each for pair in found for each in pair)]


def batch_norms(x: Tensor) -> list[Tensor]:
    """Batch norm by its two newer operators, and the statistics that they write."""
    mean, variance = (torch.full((6,), value, device=x.device) for value in (0.5, 2.0))
    weight, bias = x.detach()[0], x.detach()[1]
    legit = torch.ops.aten._native_batch_norm_legit
    updated = torch.ops.aten._batch_norm_with_update
    statistics = [mean.clone(), variance.clone()]
    y, *_ = legit(x, weight, bias, mean, variance, True, 0.1, 1e-5)
    z, *_ = updated(x, weight, bias, *statistics, 0.1, 1e-5)
    return [y + z, mean, variance, *statistics]


def bent(x: Tensor) -> list[Tensor]:
    torch.manual_seed(5)
    drawn = F.rrelu(x, 0.1, 0.4, training=True)
    return [drawn, F.rrelu(x), torch.rand(3, device=x.device)]


def twice(x: Tensor, i: Tensor, y: Tensor) -> Tensor:
    """The gradient of a gradient through operators by an index."""
    z = x.scatter_reduce(1, i, y, "prod").gather(1, i) * y.scatter_add(1, i - i, y)
    first = torch.autograd.grad(z.square().sum(), (x, y), create_graph=True)
    return torch.cat([each.flatten() for each in first])


CASES: dict[str, tuple[Case, Sequence[Tensor]]] = {
    "numbers": (of_all, (NUMBER, FIRST, NUMBER + 1)),
    "numbers in bfloat16": (of_all, (NUMBER.bfloat16(), FIRST, NUMBER.bfloat16() + 1)),
    "gather by short indices": (lambda x, i: x.t().gather(0, i.int().t()), (X, INDEX)),
    "gather of complex numbers": (
        lambda x, i: torch.view_as_real(x.conj().gather(1, i)),
        (COMPLEX, INDEX),
    ),
    "gather of long complex numbers": (
        lambda x, i: torch.view_as_real(x.gather(1, i)),
        (COMPLEX.to(torch.complex128), INDEX),
    ),
    "scatter of complex numbers": (
        lambda x, i, y: torch.view_as_real(x.scatter(1, i, y) + x.scatter(1, i, 1 - 2j)),
        (COMPLEX, INDEX, COMPLEX[:, :5]),
    ),
    # Longer than the scratch of a PE in one piece.
    "sums of a wide row": (lambda x: x.sum(0), (WIDE[:1],)),
    "means of two wide rows": (lambda x: x.mean(0), (WIDE,)),
    "sums of complex numbers": (
        lambda x, i, y: torch.view_as_real(x.clone().scatter_add_(1, i, y)),
        (COMPLEX, INDEX, COMPLEX[:, :5]),
    ),
    "products by an index": (by_index("prod"), (X, INDEX, SOURCE)),
    "products with zeros": (by_index("prod", includes=False), (X, INDEX, ZEROS)),
    "products of half numbers": (by_index("prod"), (X.half(), INDEX, SOURCE.half())),
    "products of integers": (by_index("prod", includes=False), (LONG, INDEX, GIVEN)),
    "products of bools": (by_index("prod"), (LONG > 0, INDEX, GIVEN > 0)),
    "sums of bools": (by_index("sum", includes=False), (LONG > 0, INDEX, GIVEN > 0)),
    "means of integers": (by_index("mean"), (LONG, INDEX, GIVEN)),
    "least limits": (
        lambda x, i: x.scatter_reduce(0, i, x + 0, "amin", include_self=False),
        (LIMITS, torch.tensor([1, 1, 3, 0])),
    ),
    "a long number for columns": (
        lambda x: x.t()[1:].fill_(2**60 + 1),
        (LONG,),
    ),
    "factors by an index": (
        lambda x, i, y: x.detach().scatter(1, i, y.detach(), reduce="multiply"),
        (X, INDEX, SOURCE),
    ),
    "numbers added by an index": (lambda x, i: x.scatter(1, i, 2, reduce="add"), (LONG, INDEX)),
    "products of rows": (of_rows("prod"), (X[:, :4], ROWS, SOURCE)),
    "means of rows": (of_rows("mean", includes=False), (X[:, :4], ROWS, SOURCE)),
    "greatest of rows": (of_rows("amax"), (X[:, :4], ROWS, SOURCE)),
    "least integers of rows": (of_rows("amin", includes=False), (LONG[:, :4], ROWS, GIVEN)),
    "no index": (by_index("prod"), (X, INDEX[:, :0], SOURCE[:, :0])),
    "gradients of gradients": (twice, (X, INDEX, SOURCE)),
    "most frequent": (lambda x: x.mode(1), (EQUAL,)),
    "most frequent of columns": (lambda x: x.mode(0, keepdim=True), (EQUAL.bfloat16(),)),
    "most frequent bools": (lambda x: x.mode(0), (LONG > 0,)),
    "greatest integers": (lambda x: x.topk(3)[0], (LONG,)),
    "distinct rows": (
        lambda x: torch.unique(x, return_inverse=True, return_counts=True, dim=0),
        (LONG[[2, 0, 1, 0, 2, 3]],),
    ),
    "distinct columns": (lambda x: torch.unique(x.detach().t(), dim=1), (X[[2, 0, 1, 0, 2]],)),
    "distinct neighbours": (
        lambda x: torch.unique_consecutive(x.detach(), True, True, dim=0),
        (X[[2, 2, 1, 1, 2]],),
    ),
    "places of some": (
        lambda x: [torch.nonzero_static(x > 0, size=each, fill_value=7) for each in (0, 3, 90)],
        (LONG,),
    ),
    "index_fill": (lambda x, i, y: x.index_fill(0, i, y), (X, ROWS, NUMBER)),
    "sums of segments": (of_segments("sum"), (X, torch.tensor([1, 0, 3]))),
    "means of segments": (of_segments("mean"), (X, torch.tensor([1, 0, 3]))),
    "means of segments from a start": (
        of_segments("mean", initial=2.0),
        (X.bfloat16(), torch.tensor([1, 0, 3])),
    ),
    "greatest of equal ones": (of_segments("max"), (EQUAL[:, :4], torch.tensor([4, 3]))),
    "least of segments": (of_segments("min", unsafe=True), (X, torch.tensor([2, 1]))),
    "products of segments": (of_segments("prod", initial=3.0), (ZEROS, torch.tensor([0, 4]))),
    "segments of each row": (
        of_segments("prod", axis=1),
        (torch.stack([ZEROS, SOURCE], 2), torch.tensor([[5, 0], [2, 3], [4, 1], [1, 4]])),
    ),
    "segments by their starts": (
        lambda x, n: torch.segment_reduce(x, "sum", offsets=n, axis=0),
        (X, torch.tensor([0, 3, 4])),
    ),
    "greatest of bags": (of_bags("max"), (TABLE, BAGS, STARTS)),
    "greatest of padded bags": (of_bags("max", padding_idx=3), (TABLE, BAGS, STARTS)),
    "weights of bags": (
        lambda x, i, n, y: F.embedding_bag(
            i, x, n, mode="sum", per_sample_weights=y, padding_idx=8
        ),
        (TABLE, BAGS, STARTS, numbers(7)),
    ),
    "neighbours": (lambda x: x.nextafter(x.flip(0)), (UNUSUAL,)),
    "neighbours in float64": (lambda x: x.nextafter(x.flip(0)), (UNUSUAL.double(),)),
    "neighbours in bfloat16": (lambda x: x.nextafter(x.flip(0)), (UNUSUAL.bfloat16(),)),
    "bent at random": (bent, (X,)),
    "Bessel functions": (
        lambda x: [f(6 * x) for f in (torch.i0, torch.special.i0e, torch.special.i1e)],
        (X,),
    ),
    "Kaiser windows": (
        lambda x: [
            torch.kaiser_window(each, each < 8, beta=each, device=x.device) for each in (0, 1, 7, 9)
        ],
        (X,),
    ),
    "silu of complex numbers": (
        lambda x: F.silu(torch.view_as_complex(x.detach().view(12, 2))).abs(),
        (X,),
    ),
    "batch norms": (batch_norms, (X,)),
    "sampled to the border": (sampled("bilinear", "border", aligned=True), (IMAGE, GRID)),
    "sampled by reflection": (sampled("bilinear", "reflection"), (IMAGE, GRID)),
    "sampled with aligned reflection": (
        sampled("bilinear", "reflection", aligned=True),
        (IMAGE, GRID),
    ),
    "nearest samples": (sampled("nearest", "border"), (IMAGE, GRID)),
    "bicubic samples": (sampled("bicubic", "border"), (IMAGE, GRID)),
    "samples of volumes": (sampled("bilinear", "zeros"), (VOLUME, SPACE)),
    "samples of reflected volumes": (sampled("bilinear", "reflection"), (VOLUME, SPACE)),
    "nearest samples of volumes": (sampled("nearest", "zeros"), (VOLUME, SPACE)),
}


def compare(name: str) -> str:
    """The results and the gradients of a case on both devices."""
    function, operands = CASES[name]
    found = list[list[Tensor]]()
    for device in ("cpu", "ahbm"):
        own = [
            each.to(device).detach().requires_grad_(each.is_floating_point() or each.is_complex())
            for each in operands
        ]
        given = function(*own)
        results = list(given) if isinstance(given, tuple | list) else [given]
        assert results[0].device.type == device, f"the result is on {results[0].device}"
        summed = [each for each in results if each.requires_grad]
        leaves = [each for each in own if each.requires_grad]
        gradients = ()
        if summed:
            total = sum((each.float() * _weights(each)).sum() for each in summed)
            gradients = torch.autograd.grad(total, leaves, allow_unused=True)
        found.append([each.detach().cpu() for each in (*results, *gradients) if each is not None])
    small = any(each.dtype in {torch.float16, torch.bfloat16} for each in operands)
    for expected, actual in zip(*found, strict=True):
        finite = expected[expected.isfinite()].to(torch.complex128).abs()
        largest = finite.max().item() if finite.numel() else 0
        # Sums and products of up to 60 terms, rounded by 2^-24 or 2^-9 each.
        share = 2e-2 if small and "neighbours" not in name else 4e-6
        torch.testing.assert_close(
            actual, expected, rtol=share, atol=share * largest, equal_nan=True
        )
    return "ok"


def _weights(result: Tensor) -> Tensor:
    """Different factors of all elements, of both signs."""
    factors = torch.linspace(-1, 2, result.numel()).view(result.shape)
    return factors.to(result.device)


if __name__ == "__main__":
    print_outcomes(CASES, compare, FALLBACKS)
