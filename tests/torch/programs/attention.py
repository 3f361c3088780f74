"""Attention and its gradients on the device against float64 on the CPU; prints a line for each
case: its outcome and the kernels.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's convention
from outcomes import print_outcomes
from torch.nn.attention import SDPBackend, sdpa_kernel

from kernbench.torch_backend.aten.operators import CALLS

F32, F16, BF16 = torch.float32, torch.float16, torch.bfloat16
TOLERANCES = {F32: 2e-6, F16: 1e-3, BF16: 8e-3}
"""Parts of the largest element: sums in float32, one or two roundings to the smaller types."""
INFINITY = float("inf")
DRAW = torch.Generator().manual_seed(0)


def some(*shape: int) -> torch.Tensor:
    return torch.rand(shape, generator=DRAW) > 0.3


def numbers(*shape: int, dtype: torch.dtype = F32) -> torch.Tensor:
    return torch.randn(shape, generator=DRAW).to(dtype)


def without_rows(mask: torch.Tensor, hidden: float) -> torch.Tensor:
    mask[..., ::3, :] = hidden
    return mask


def padding(*lengths: int, keys: int) -> torch.Tensor:
    return (torch.arange(keys) < torch.tensor(lengths)[:, None])[:, None, None]


Shape = tuple[int, int, int, int, int, int]
CASES: dict[str, tuple[Shape, torch.dtype, dict[str, Any]]] = {
    # Batches, heads, heads of keys, queries, keys, elements.
    "one token": ((1, 1, 1, 1, 1, 32), F32, {}),
    "one query": ((1, 3, 3, 1, 17, 64), BF16, {}),
    "17 tokens": ((1, 2, 2, 17, 17, 128), F16, {"is_causal": True}),
    "129 tokens": ((1, 2, 2, 129, 129, 64), F32, {}),
    "129 tokens, causal": ((1, 2, 1, 129, 129, 80), BF16, {"is_causal": True}),
    "25 tokens, causal": ((1, 1, 1, 25, 25, 32), F32, {"is_causal": True}),
    "groups": ((2, 4, 2, 33, 50, 32), F32, {"scale": 0.7}),
    "groups, causal": ((1, 4, 2, 150, 150, 80), F32, {"is_causal": True}),
    "copies by heads": ((1, 4, 2, 520, 520, 16), F32, {"is_causal": True}),
    "more heads than PEs": ((2, 66, 66, 5, 5, 16), F32, {"is_causal": True}),
    "256 elements": ((1, 1, 1, 70, 70, 256), F32, {"is_causal": True}),
    "bools": ((1, 2, 2, 129, 129, 64), F32, {"attn_mask": some(129, 129)}),
    "rows without keys": (
        (2, 2, 2, 70, 40, 32),
        F32,
        {"attn_mask": without_rows(some(2, 1, 70, 40), hidden=False)},
    ),
    "padding": ((2, 2, 1, 20, 129, 64), BF16, {"attn_mask": padding(65, 0, keys=129)}),
    "a bool for each query": ((1, 2, 2, 40, 33, 32), F32, {"attn_mask": some(2, 40, 1)}),
    "numbers": ((1, 2, 2, 40, 129, 64), F32, {"attn_mask": numbers(2, 40, 129)}),
    "numbers in groups": ((1, 4, 2, 40, 33, 32), F32, {"attn_mask": numbers(1, 4, 40, 33)}),
    "bfloat16 numbers": ((1, 2, 2, 40, 33, 32), BF16, {"attn_mask": numbers(40, 33, dtype=BF16)}),
    "transposed numbers": ((1, 2, 2, 40, 33, 32), F32, {"attn_mask": numbers(33, 40).t()}),
    "infinities": (
        (1, 2, 2, 129, 70, 64),
        F32,
        {"attn_mask": without_rows(numbers(1, 2, 129, 70), hidden=-INFINITY)},
    ),
    "least numbers": (
        (1, 2, 2, 20, 40, 32),
        F32,
        {"attn_mask": without_rows(torch.zeros(20, 40), hidden=torch.finfo(F32).min)},
    ),
}


def reference(
    operands: list[torch.Tensor], grad: torch.Tensor, options: dict[str, Any]
) -> list[torch.Tensor]:
    q, k, v = (each.double().requires_grad_() for each in operands)
    group = q.shape[1] // k.shape[1]
    scores = q @ k.repeat_interleave(group, 1).mT * options.get("scale", q.shape[-1] ** -0.5)
    mask = options.get("attn_mask")
    if options.get("is_causal"):
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
    if mask is not None and mask.dtype == torch.bool:
        scores = scores.masked_fill(~mask, -INFINITY)
    elif mask is not None:
        scores = scores.float() + mask if mask.min() < -1e38 else scores + mask
    scores = scores.double()
    has_keys = scores.detach().amax(-1, keepdim=True) > -INFINITY
    powers = torch.where(has_keys, scores, 0.0).softmax(-1) * has_keys
    result = powers @ v.repeat_interleave(group, 1)
    return [result.detach(), *torch.autograd.grad(result, (q, k, v), grad.double())]


def compare(name: str) -> str:
    (batches, heads, groups, queries, keys, depth), dtype, options = CASES[name]
    # Heads behind tokens, as a projection writes them, and in front.
    q = numbers(batches, queries, heads, depth, dtype=dtype).transpose(1, 2)
    k = numbers(batches, keys, groups, depth, dtype=dtype).transpose(1, 2)
    v = numbers(batches, groups, keys, depth, dtype=dtype)
    grad = numbers(batches, heads, queries, depth, dtype=dtype)
    own = [each.to("ahbm").requires_grad_() for each in (q, k, v)]
    moved = {
        key: value.to("ahbm") if isinstance(value, torch.Tensor) else value
        for key, value in options.items()
    }
    result = F.scaled_dot_product_attention(*own, **moved, enable_gqa=heads != groups)
    found = [result.detach(), *torch.autograd.grad(result, own, grad.to("ahbm"))]
    for actual, expected in zip(found, reference([q, k, v], grad, options), strict=True):
        largest = max(1.0, expected.abs().max().item())
        error = (actual.cpu().double() - expected).abs().max().item() / largest
        assert error < TOLERANCES[dtype], f"{error:.1e} of the largest element"
    return "ok"


def memory() -> str:
    """The memory of a gradient of 2,048 tokens, in tensors of q."""
    tokens, depth = 2048, 16
    q, k, v, grad = (numbers(1, 1, tokens, depth, dtype=BF16).to("ahbm") for _ in range(4))
    given = [each.requires_grad_() for each in (q, k, v)]
    torch.ahbm.reset_peak_memory_stats()
    before = torch.ahbm.memory_allocated()
    result = F.scaled_dot_product_attention(*given, is_causal=True)
    torch.autograd.grad(result, given, grad)
    taken = torch.ahbm.max_memory_allocated() - before
    # The result, three gradients, three numbers of each row.
    least = 4 * q.nbytes + 3 * tokens * 4
    assert least <= taken <= 1.1 * least, f"{taken:,} bytes beside {least:,}"
    return "ok"


def second_gradient() -> str:
    """The gradient of a gradient, which the products and the softmax compute."""
    found = []
    q, k, v = (numbers(1, 2, 9, 16) for _ in range(3))
    for device in ("cpu", "ahbm"):
        own = [each.to(device).requires_grad_() for each in (q, k, v)]
        # The other kernel of CPUs has one gradient only.
        with sdpa_kernel(SDPBackend.MATH):
            result = F.scaled_dot_product_attention(*own)
        first = torch.autograd.grad(result.square().sum(), own, create_graph=True)
        total = sum(each.square().sum() for each in first)
        found.append([each.cpu() for each in torch.autograd.grad(total, own)])
    torch.testing.assert_close(*found, rtol=1e-4, atol=1e-4)
    return "ok"


def stored(**options: object) -> Callable[[], str]:
    """A call whose scores are stored, against the CPU."""

    def check() -> str:
        found = []
        q, k, v = (numbers(1, 2, length, 16) for length in (9, 12, 12))
        for device in ("cpu", "ahbm"):
            own = [each.to(device).requires_grad_() for each in (q, k, v)]
            moved = {
                key: each.detach().to(device).requires_grad_()
                if isinstance(each, torch.Tensor)
                else each
                for key, each in options.items()
            }
            own += [each for each in moved.values() if isinstance(each, torch.Tensor)]
            torch.manual_seed(0)
            result = F.scaled_dot_product_attention(*own[:3], **moved)
            grads = torch.autograd.grad(result.square().sum(), own)
            found.append([each.cpu() for each in (result, *grads)])
        torch.testing.assert_close(*found, rtol=1e-4, atol=1e-5)
        return "ok"

    return check


def broadcast_keys() -> str:
    """Keys and values of one head, which broadcast, and a mask of bools: scores are stored."""
    q, k, v = (numbers(2, heads, 12, 8) for heads in (4, 1, 1))
    mask = torch.ones(12, 12, dtype=torch.bool).tril()
    expected = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    own = [each.to("ahbm") for each in (q, k, v, mask)]
    result = F.scaled_dot_product_attention(*own[:3], attn_mask=own[3])
    torch.testing.assert_close(result.cpu(), expected, rtol=1e-4, atol=1e-5)
    return "ok"


OTHERS = {
    "memory": memory,
    "bools beside keys of one head": broadcast_keys,
    "second gradient": second_gradient,
    "gradient of a mask": stored(attn_mask=numbers(9, 12)),
    "fewer queries, causal": stored(is_causal=True),
}


def _kernels(counted: Counter[str]) -> str:
    return " ".join(f"{each} {counted[each]}" for each in sorted(counted) if "attention" in each)


def _outcome(case: str) -> str:
    return OTHERS[case]() if case in OTHERS else compare(case)


if __name__ == "__main__":
    print_outcomes([*CASES, *OTHERS], _outcome, CALLS, _kernels, separator=";")
