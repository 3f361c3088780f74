"""Products of any sizes: their results beside those of a CPU, or their times in a run without data.

`values`: lines `= size form worst`, the largest error of an element in units of the sum of absolute
products. `times [BATCHx]ROWSxDEPTHxCOLUMNS ...`: lines `= size ns bound`, of `x @ w.mT`, the
second time, which later ones take, too.
"""

import sys
from itertools import product
from math import prod

import torch

from runtime.device.rank.properties import get_device_properties

SIZES = [
    (1, 64, 128),
    (3, 100, 7),
    (7, 129, 1000),
    (8, 768, 300),
    (33, 1000, 257),
    (100, 65, 1024),
    (130, 300, 50),
    (300, 512, 300),
]
BATCHES = [
    (2, 1, 512, 300),
    (3, 5, 768, 100),
    (17, 2, 64, 300),
    (40, 70, 128, 65),
    (3, 130, 1024, 64),
]
TYPES = {"float32": 1e-6, "bfloat16": 1e-2}


def values() -> None:
    """Each operand as it is and transposed, with and without a bias."""
    draw = torch.Generator().manual_seed(1)
    for (m, k, n), (name, bound), form in product(SIZES, TYPES.items(), range(4)):
        dtype = getattr(torch, name)
        a = torch.randn((m, k) if form & 1 else (k, m), generator=draw).to(dtype)
        b = torch.randn((k, n) if form & 2 else (n, k), generator=draw).to(dtype)
        bias = torch.randn(n, generator=draw).to(dtype)
        turned = [a if form & 1 else a.T, b if form & 2 else b.T]
        on_device = [each.to("ahbm") for each in (a, b)]
        left = on_device[0] if form & 1 else on_device[0].T
        right = on_device[1] if form & 2 else on_device[1].T
        wide = [each.double() for each in turned]
        scale = wide[0].abs() @ wide[1].abs() + bias.double().abs()
        worst = 0.0
        for result, expected in (
            (left @ right, wide[0] @ wide[1]),
            (torch.addmm(bias.to("ahbm"), left, right), wide[0] @ wide[1] + bias.double()),
        ):
            worst = max(worst, float(((result.cpu().double() - expected).abs() / scale).max()))
        print(f"= {m}x{k}x{n} {name} {form} {worst < bound}", flush=True)


def batches() -> None:
    """Batches of products: a transposed right operand, a plain one, heads that are neighbours."""
    draw = torch.Generator().manual_seed(1)
    for (count, m, k, n), (name, bound), form in product(BATCHES, TYPES.items(), range(3)):
        dtype = getattr(torch, name)
        a = torch.randn((m, count, k) if form == 2 else (count, m, k), generator=draw).to(dtype)
        b = torch.randn((count, k, n) if form else (count, n, k), generator=draw).to(dtype)
        on_device = [each.to("ahbm") for each in (a, b)]
        left, right = (
            (x.transpose(0, 1) if form == 2 else x, y if form else y.mT)
            for x, y in (on_device, (a, b))
        )
        wide = [each.double() for each in right]
        error = (torch.bmm(*left).cpu().double() - wide[0] @ wide[1]).abs()
        worst = float((error / (wide[0].abs() @ wide[1].abs())).max())
        print(f"= {count}x{m}x{k}x{n} {name} {form} {worst < bound}", flush=True)


def times(sizes: list[str]) -> None:
    """The time of the second of equal products, and the larger bound of bytes and multiply-adds."""
    device = get_device_properties()
    hbm_gbs = device.pe_count * device.hbm_gbs_per_pe
    macs_per_ns = device.pe_count * device.peak_gemm_tflops_per_pe * 500
    for size in sizes:
        *batch, m, k, n = map(int, size.split("x"))
        x, w = (
            torch.zeros((*batch, *each), dtype=torch.bfloat16, device="ahbm")
            for each in ((m, k), (n, k))
        )
        for _ in range(2):
            y = None
            begin, end = (torch.ahbm.Event(enable_timing=True) for _ in range(2))
            begin.record()
            y = x @ w.mT
            end.record()
            torch.ahbm.synchronize()
        assert y is not None
        bound = max(2 * (m * k + k * n + m * n) / hbm_gbs, m * k * n / macs_per_ns)
        bound *= prod(batch)
        print(f"= {size} {begin.elapsed_time(end) * 1e6:.0f} {bound:.0f}", flush=True)


if sys.argv[1] == "values":
    values()
    batches()
else:
    times(sys.argv[2:])
