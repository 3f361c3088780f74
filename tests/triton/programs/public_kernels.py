"""Kernels of public collections, from their installed packages, compared with PyTorch on a CPU.

launch.py --sips 1 tests/triton/programs/public_kernels.py NAME
"""

import sys
from collections.abc import Callable

import torch
from torch.nn import functional

DEVICE = "ahbm"
_Pair = tuple[torch.Tensor, torch.Tensor]


def draw(*shape: int) -> torch.Tensor:
    return torch.randn(*shape)


def on(x: torch.Tensor) -> torch.Tensor:
    return x.to(DEVICE)


def liger_rms_norm() -> _Pair:
    from liger_kernel.ops.rms_norm import rms_norm_forward

    x, w = draw(6, 256), draw(256)
    out = rms_norm_forward(on(x), on(w), 1e-6, 0.0, "llama", None)[0]
    return out, functional.rms_norm(x, (256,), w, 1e-6)


def liger_layer_norm() -> _Pair:
    from liger_kernel.ops.layer_norm import layer_norm_forward

    x, w, b = draw(6, 200), draw(200), draw(200)
    out = layer_norm_forward(on(x), on(w), on(b), 1e-5)[0]
    return out, functional.layer_norm(x, (200,), w, b)


def liger_group_norm() -> _Pair:
    from liger_kernel.ops.group_norm import group_norm_forward

    x, w, b = draw(2, 8, 30), draw(8), draw(8)
    out = group_norm_forward(on(x), 8, 4, on(w), on(b), 1e-5)[0]
    return out, functional.group_norm(x, 4, w, b, 1e-5)


def liger_swiglu() -> _Pair:
    from liger_kernel.ops.swiglu import swiglu_forward

    a, b = draw(6, 100), draw(6, 100)
    return swiglu_forward(on(a), on(b))[-1], functional.silu(a) * b


def liger_geglu() -> _Pair:
    from liger_kernel.ops.geglu import geglu_forward

    a, b = draw(6, 100), draw(6, 100)
    return geglu_forward(on(a), on(b))[-1], functional.gelu(a, approximate="tanh") * b


def liger_rope() -> _Pair:
    from liger_kernel.ops.rope import rope_forward

    q, k, angle = draw(1, 4, 8, 32), draw(1, 2, 8, 32), draw(1, 8, 16)
    cos, sin = (torch.cat([each] * 2, -1) for each in (angle.cos(), angle.sin()))
    out = rope_forward(on(q), on(k), on(cos), on(sin))[0]
    turned = torch.cat([-q[..., 16:], q[..., :16]], -1)
    return out, q * cos[:, None] + turned * sin[:, None]


def liger_cross_entropy() -> _Pair:
    from liger_kernel.ops.cross_entropy import cross_entropy_forward

    x, y = draw(5, 300), torch.randint(0, 300, (5,))
    out = cross_entropy_forward(on(x), on(y), None, -100, 0.0, 0.0, "mean", None, False)[0]
    return out, functional.cross_entropy(x, y)


def liger_kl_div() -> _Pair:
    from liger_kernel.ops.kl_div import kldiv_forward_triton

    p, q = draw(4, 200).log_softmax(-1), draw(4, 200).softmax(-1)
    out = kldiv_forward_triton(on(p), on(q), False, "batchmean", 1e-10)
    return out, functional.kl_div(p, q, reduction="batchmean")


def liger_softmax() -> _Pair:
    from liger_kernel.ops.softmax import _softmax_forward

    x = draw(6, 100)
    return _softmax_forward(on(x))[0], x.softmax(-1)


def fla_rms_norm() -> _Pair:
    from fla.modules.layernorm import layer_norm_fwd

    x, w = draw(6, 128), draw(128)
    out = layer_norm_fwd(on(x), on(w), None, 1e-5, is_rms_norm=True)[0]
    return out, functional.rms_norm(x, (128,), w, 1e-5)


def fla_cumsum() -> _Pair:
    from fla.ops.utils.cumsum import chunk_local_cumsum

    x = draw(1, 64, 4)
    exact = x.reshape(1, 4, 16, 4).cumsum(2).reshape(1, 64, 4)
    return chunk_local_cumsum(on(x), 16), exact


KERNELS: dict[str, Callable[[], _Pair]] = {
    name: function for name, function in globals().items() if name.startswith(("liger_", "fla_"))
}

if __name__ == "__main__":
    torch.manual_seed(0)
    (name,) = sys.argv[1:]
    result, exact = KERNELS[name]()
    print(f"= {name} {float((result.cpu().float() - exact).abs().max()):.2e}")
