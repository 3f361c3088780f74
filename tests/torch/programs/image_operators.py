"""Pools, upsampling and margins of the device against those of the CPU; prints a line for each
case: its outcome and the operators on the host.
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


def unusual() -> Tensor:
    x = numbers(2, 3, 9, 8)
    x[0, 0, 2, 3], x[0, 0, 3, 3], x[0, 1], x[1, 0, 4, 4] = torch.nan, torch.nan, -torch.inf, 9e9
    return x


SEQUENCE, IMAGE, VOLUME = numbers(3, 4, 31), numbers(2, 3, 9, 8), numbers(2, 2, 5, 6, 7)
PLANES, WIDE, UNUSUAL = numbers(16, 9, 12, 12), numbers(1, 2, 61, 95), unusual()
LONG = numbers(2, 1, 5003)
CHANNELS_LAST = PLANES.contiguous(memory_format=torch.channels_last)
BYTES = torch.randint(0, 256, (2, 3, 5, 6), generator=DRAW, dtype=torch.uint8)


def largest(axes: int, *arguments: object, **options: object) -> Callable[[Tensor], object]:
    """Maxima and their numbers."""
    pool = (F.max_pool1d, F.max_pool2d, F.max_pool3d)[axes - 1]
    return lambda x: pool(x, *arguments, return_indices=True, **options)


def adaptive_largest(axes: int, counts: object) -> Callable[[Tensor], object]:
    pool = (F.adaptive_max_pool1d, F.adaptive_max_pool2d, F.adaptive_max_pool3d)[axes - 1]
    return lambda x: pool(x, counts, return_indices=True)


def mean(axes: int, *arguments: object, **options: object) -> Callable[[Tensor], object]:
    pool = (F.avg_pool1d, F.avg_pool2d, F.avg_pool3d)[axes - 1]
    return lambda x: pool(x, *arguments, **options)


def resized(**options: object) -> Callable[[Tensor], object]:
    return lambda x: F.interpolate(x, **options)


def padded(*margins: int, mode: str) -> Callable[[Tensor], object]:
    return lambda x: F.pad(x, margins, mode=mode)


MOVED: dict[str, tuple[Callable[[Tensor], object], Tensor]] = {
    "maxima": (largest(2, 2), IMAGE),
    "maxima of overlapping windows": (largest(2, 3, 2, 1), PLANES),
    "maxima of every window": (largest(2, 3, 1, 1), UNUSUAL),
    "maxima with any steps": (largest(2, (3, 2), (2, 1), 1, (1, 2), ceil_mode=True), IMAGE),
    "maxima with windows that end outside": (largest(2, 2, 3, ceil_mode=True), IMAGE),
    "maxima with gaps between windows": (largest(2, 2, 4), IMAGE),
    "maxima of one image": (largest(2, 2), IMAGE[0]),
    "maxima in bfloat16": (largest(2, 3, 2, 1), IMAGE.bfloat16()),
    "maxima in float64": (largest(2, 3, 2, 1), IMAGE.double()),
    "maxima with channels last": (largest(2, 3, 2, 1), CHANNELS_LAST),
    "maxima in strips of rows": (largest(2, 5, 2, 2), WIDE),
    "maxima of sequences": (largest(1, 3, 2, 1), SEQUENCE),
    "maxima of long sequences": (largest(1, 3, 2, 1), LONG),
    "maxima of volumes": (largest(3, 2), VOLUME),
    "maxima of volumes with any steps": (largest(3, 2, (1, 2, 3), 1, (2, 1, 2)), VOLUME),
    "maxima of no image": (largest(2, 2), IMAGE[:0]),
    "adaptive maxima that divide": (adaptive_largest(2, (3, 4)), UNUSUAL),
    "adaptive maxima": (adaptive_largest(2, (4, 3)), UNUSUAL),
    "more adaptive maxima than elements": (adaptive_largest(2, (11, 3)), IMAGE),
    "adaptive maxima of sequences": (adaptive_largest(1, 7), SEQUENCE),
    "adaptive maxima of volumes": (adaptive_largest(3, (2, 3, 4)), VOLUME),
    "nearest of sequences": (resized(scale_factor=3), SEQUENCE),
    "nearest": (resized(scale_factor=2), UNUSUAL),
    "nearest with channels last": (resized(scale_factor=2), CHANNELS_LAST),
    "nearest of any size": (resized(size=(7, 19)), IMAGE),
    "nearest by a scale": (resized(scale_factor=1.7), IMAGE),
    "nearest of volumes": (resized(scale_factor=2), VOLUME),
    "nearest of bytes": (resized(scale_factor=2), BYTES),
    "exactly nearest": (resized(size=(7, 19), mode="nearest-exact"), IMAGE),
    "reflected margins": (padded(2, 1, 3, 0, mode="reflect"), UNUSUAL),
    "reflected margins of sequences": (padded(5, 2, mode="reflect"), SEQUENCE),
    "reflected margins of volumes": (padded(1, 2, 0, 3, 2, 1, mode="reflect"), VOLUME),
    "reflected margins of short integers": (padded(2, 1, 3, 0, mode="reflect"), BYTES.short()),
    "repeated margins": (padded(2, 1, 3, 0, mode="replicate"), IMAGE.bfloat16()),
    "repeated margins of sequences": (padded(9, 2, mode="replicate"), SEQUENCE),
    "repeated margins of volumes": (padded(1, 2, 0, 3, 2, 1, mode="replicate"), VOLUME),
    "margins round": (padded(2, 1, 3, 0, mode="circular"), IMAGE),
    "shuffled pixels": (lambda x: F.pixel_shuffle(x[:, :, :8].reshape(2, 12, 4, 4), 2), IMAGE),
}
"""Cases whose results are elements of the operand."""
SUMMED: dict[str, tuple[Callable[[Tensor], object], Tensor]] = {
    "means": (mean(2, 2), PLANES),
    "means of sequences": (mean(1, 3, 2, 1), SEQUENCE),
    "means with margins": (mean(2, 3, 2, 1), IMAGE),
    "means without margins": (mean(2, 3, 2, 1, count_include_pad=False), IMAGE),
    "means with windows that end outside": (mean(2, 3, 2, 1, ceil_mode=True), IMAGE),
    "means by a divisor": (mean(2, (3, 2), divisor_override=5), IMAGE),
    "means in float16": (mean(2, 3, 1), IMAGE.half()),
    "means with channels last": (mean(2, (3, 2), 1), CHANNELS_LAST),
    "means in strips of rows": (mean(2, 5, 3, 2), WIDE),
    "means of volumes": (mean(3, 3, 2, 1, count_include_pad=False, ceil_mode=True), VOLUME),
    "means of volumes with margins": (mean(3, 3, 2, 1, ceil_mode=True), VOLUME),
    "adaptive means": (lambda x: F.adaptive_avg_pool2d(x, (4, 3)), IMAGE),
    "adaptive means of sequences": (lambda x: F.adaptive_avg_pool1d(x, 7), SEQUENCE),
    "adaptive means of volumes": (lambda x: F.adaptive_avg_pool3d(x, (2, 3, 4)), VOLUME),
    "linear": (resized(scale_factor=2, mode="linear"), SEQUENCE),
    "bilinear": (resized(scale_factor=2, mode="bilinear"), PLANES),
    "bilinear with corners": (resized(size=(5, 21), mode="bilinear", align_corners=True), IMAGE),
    "bilinear in bfloat16": (resized(scale_factor=2, mode="bilinear"), IMAGE.bfloat16()),
    "bilinear in float64": (resized(scale_factor=1.5, mode="bilinear"), IMAGE.double()),
    "bilinear to fewer": (resized(size=(4, 3), mode="bilinear"), IMAGE),
    "trilinear": (resized(scale_factor=2, mode="trilinear"), VOLUME),
    "bicubic": (resized(scale_factor=2, mode="bicubic"), IMAGE),
    "bicubic with corners": (resized(size=(5, 21), mode="bicubic", align_corners=True), IMAGE),
}
CASES = MOVED | SUMMED


def compare(name: str) -> str:
    """The gradients and the results of a case on both devices."""
    function, operand = CASES[name]
    outcomes = list[tuple[list[Tensor], list[Tensor]]]()
    for device in ("cpu", "ahbm"):
        x = operand.to(device).detach().requires_grad_(operand.is_floating_point())
        given = function(x)
        results = list(given) if isinstance(given, tuple) else [given]
        assert results[0].device.type == device, f"the result is on {results[0].device}"
        gradients = list[Tensor]()
        if results[0].requires_grad and results[0].numel():
            weights = torch.linspace(-1, 2, results[0].numel()).view(results[0].shape)
            results[0].backward(weights.to(device, results[0].dtype))
            gradients.append(x.grad.cpu())
        outcomes.append(([each.detach().cpu() for each in results], gradients))
    (expected, of_cpu), (actual, of_device) = outcomes
    for pair in zip(expected, actual, strict=True):
        _check(*pair, is_exact=name in MOVED)
    for pair in zip(of_cpu, of_device, strict=True):
        _check(*pair, is_exact=False)
    return "ok"


def _check(expected: Tensor, actual: Tensor, *, is_exact: bool) -> None:
    if is_exact or not expected.numel():
        torch.testing.assert_close(actual, expected, rtol=0, atol=0, equal_nan=True)
        return
    # A CPU contracts products and sums of positions, which differ by 2^-23 of an axis.
    share = 2e-2 if expected.itemsize == 2 else 5e-6
    finite = expected[expected.isfinite()].double()
    largest = finite.abs().max().item() if finite.numel() else 0
    torch.testing.assert_close(actual, expected, rtol=share, atol=share * largest, equal_nan=True)


if __name__ == "__main__":
    print_outcomes(CASES, compare, FALLBACKS)
