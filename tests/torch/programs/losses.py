"""Cross entropy and its gradients on the device against float64 on the CPU; prints a line for each
case: its outcome and the kernels.
"""

from collections import Counter
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's convention
from outcomes import print_outcomes

from kernbench.torch_backend.aten.operators import CALLS

TOLERANCES = {torch.float64: 1e-12, torch.float32: 2e-6, torch.float16: 1e-3, torch.bfloat16: 8e-3}
"""Parts of the largest element: sums in the type or in float32, one rounding to smaller types."""
DRAW = torch.Generator().manual_seed(0)


def numbers(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return (3 * torch.randn(shape, generator=DRAW)).to(dtype)


def classes(*shape: int, of: int, ignored: int | None = None) -> torch.Tensor:
    drawn = torch.randint(0, of, shape, generator=DRAW)
    if ignored is not None:
        drawn[::3] = ignored
    return drawn


def of_type(dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor, dict[str, Any]]:
    return numbers(33, 129, dtype=dtype), classes(33, of=129, ignored=-100), {}


def with_infinities() -> torch.Tensor:
    logits = numbers(5, 9000)
    logits[:, :4600] = -torch.inf
    return logits


CASES: dict[str, tuple[torch.Tensor, torch.Tensor, dict[str, Any]]] = {
    "mean": (numbers(300, 70), classes(300, of=70), {}),
    "sum": (numbers(300, 70), classes(300, of=70), {"reduction": "sum"}),
    "none": (numbers(300, 70), classes(300, of=70), {"reduction": "none"}),
    "ignored": (numbers(50, 7), classes(50, of=7, ignored=3), {"ignore_index": 3}),
    "ignored, none": (
        numbers(50, 7),
        classes(50, of=7, ignored=-1),
        {"ignore_index": -1, "reduction": "none"},
    ),
    "all ignored": (numbers(5, 7), torch.full((5,), -100), {}),
    "all ignored, sum": (numbers(5, 7), torch.full((5,), -100), {"reduction": "sum"}),
    "one row": (numbers(1, 17), classes(1, of=17), {}),
    "one class": (numbers(4, 1), classes(4, of=1), {}),
    "float64": of_type(torch.float64),
    "float16": of_type(torch.float16),
    "bfloat16": of_type(torch.bfloat16),
    "long rows": (numbers(3, 20011), classes(3, of=20011), {}),
    "infinities": (with_infinities(), torch.tensor([8999, 4600, 4601, 7000, 5000]), {}),
    "columns of a matrix": (numbers(40, 99)[:, 9:79], classes(40, of=70), {}),
    "many rows": (numbers(140000, 2), classes(140000, of=2), {}),
    "transposed rows": (numbers(70, 40).t(), classes(40, of=70), {}),
    "smoothed": (numbers(40, 7), classes(40, of=7), {"label_smoothing": 0.1}),
    "weights": (numbers(40, 7), classes(40, of=7, ignored=-100), {"weight": numbers(7).abs()}),
    "positions": (numbers(4, 7, 5), classes(4, 5, of=7), {}),
    "probabilities": (numbers(40, 7), numbers(40, 7).softmax(1), {}),
}


def compare(name: str) -> str:
    logits, target, options = CASES[name]
    found = []
    for device in ("cpu", "ahbm"):
        wide = torch.float64 if device == "cpu" else logits.dtype
        own = logits.detach().to(device)
        if name == "columns of a matrix":
            own = torch.zeros(40, 99, device=device).copy_(F.pad(own, (9, 20)))[:, 9:79]
        own = own.to(wide).requires_grad_()
        moved = {
            key: each.to(device, wide) if isinstance(each, torch.Tensor) else each
            for key, each in options.items()
        }
        wanted = target.to(device, wide) if target.is_floating_point() else target.to(device)
        loss = F.cross_entropy(own, wanted, **moved)
        weights = torch.arange(1, loss.numel() + 1).to(device, loss.dtype).view(loss.shape)
        (grad,) = torch.autograd.grad(loss, [own], weights)
        found.append([loss.detach().cpu().double(), grad.cpu().double()])
    for expected, actual in zip(*found, strict=True):
        assert expected.isnan().equal(actual.isnan()), "other elements are NaN"
        largest = max(1.0, expected.nan_to_num().abs().max().item())
        error = (actual - expected).nan_to_num().abs().max().item() / largest
        assert error < TOLERANCES[logits.dtype], f"{error:.1e} of the largest element"
    return "ok"


def second_gradient() -> str:
    found = []
    logits, target = numbers(9, 7), classes(9, of=7)
    for device in ("cpu", "ahbm"):
        own = logits.to(device).requires_grad_()
        loss = F.cross_entropy(own, target.to(device))
        (first,) = torch.autograd.grad(loss * loss, [own], create_graph=True)
        found.append(torch.autograd.grad(first.square().sum(), [own])[0].cpu())
    torch.testing.assert_close(*found, rtol=1e-4, atol=1e-6)
    return "ok"


def autocast() -> str:
    """Autocast widens the logits to float32, as on GPUs."""
    with torch.autocast("ahbm", torch.bfloat16):
        loss = F.cross_entropy(numbers(9, 7).bfloat16().to("ahbm"), classes(9, of=7).to("ahbm"))
    assert loss.dtype == torch.float32
    return "ok"


OTHERS = {
    "second gradient": second_gradient,
    "autocast": autocast,
}


def _kernels(counted: Counter[str]) -> str:
    return " ".join(f"{each} {counted[each]}" for each in sorted(counted) if "cross" in each)


def _outcome(case: str) -> str:
    return OTHERS[case]() if case in OTHERS else compare(case)


if __name__ == "__main__":
    print_outcomes([*CASES, *OTHERS], _outcome, CALLS, _kernels, separator=";")
