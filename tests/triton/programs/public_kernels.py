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


def scan_forward() -> _Pair:
    from accelerated_scan.scalar import scan

    gates, tokens = torch.rand(2, 3, 64), draw(2, 3, 64)
    return scan(on(gates), on(tokens)), _scanned(gates, tokens)


def scan_backward() -> _Pair:
    from accelerated_scan.scalar import scan

    # Its blocks have 2,048 elements, and a shorter sequence is read behind its end.
    given = torch.rand(1, 2, 2048), draw(1, 2, 2048)
    weights = draw(1, 2, 2048)
    mine, exact = ([each.requires_grad_() for each in group] for group in (map(on, given), given))
    (scan(*mine) * on(weights)).sum().backward()
    (_scanned(*exact) * weights).sum().backward()
    return mine[0].grad, exact[0].grad


def _scanned(gates: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    states, state = [], torch.zeros_like(tokens[..., 0])
    for t in range(tokens.shape[-1]):
        state = gates[..., t] * state + tokens[..., t]
        states.append(state)
    return torch.stack(states, -1)


def mlstm_chunkwise() -> _Pair:
    from mlstm_kernels.torch.chunkwise.native.fw import mlstm_chunkwise_fw as native
    from mlstm_kernels.torch.chunkwise.triton_limit_chunk.fw import mlstm_chunkwise_fw

    given = (*[draw(1, 2, 64, 16) for _ in range(3)], draw(1, 2, 64), draw(1, 2, 64))
    out = mlstm_chunkwise_fw(*map(on, given), CHUNK_SIZE=16)[0]
    return out, native(*given, chunk_size=16)[0]


def mlstm_simple_gla() -> _Pair:
    from mlstm_kernels.baselines.flash_linear_attention.simple_gla.chunk import chunk_simple_gla

    q, k, v = (draw(1, 2, 64, 32) for _ in range(3))
    gates = -torch.rand(1, 2, 64)
    out = chunk_simple_gla(*map(on, (q, k, v, gates)))[0]
    total = gates.cumsum(-1)
    decay = torch.exp(total[..., :, None] - total[..., None, :]).tril()
    return out, (q @ k.mT * decay * 32**-0.5) @ v


def mlstm_step() -> _Pair:
    from mlstm_kernels.torch.recurrent.native_step import mlstm_recurrent_step__native_fw as native
    from mlstm_kernels.torch.recurrent.triton_step import mlstm_recurrent_step__triton_fw

    state = draw(1, 2, 64, 64), draw(1, 2, 64), draw(1, 2, 1)
    given = (*state, *[draw(1, 2, 64) for _ in range(3)], draw(1, 2, 1), draw(1, 2, 1))
    out = mlstm_recurrent_step__triton_fw(*map(on, given))[0]
    return out, native(*given)[0]


def lightning_attention() -> _Pair:
    from mlstm_kernels.baselines.lightning_attention.lightning_attn2 import LightningAttention2

    q, k, v = (draw(1, 2, 64, 32) / 4 for _ in range(3))
    slopes = torch.tensor([0.25, 0.5])
    distance = torch.arange(64)[:, None] - torch.arange(64)
    decay = torch.exp(-slopes[:, None, None] * distance).tril()
    out = LightningAttention2.apply(*map(on, (q, k, v)), on(slopes[:, None, None]))
    return out, (q @ k.mT * decay) @ v


def cut_indexed_dot() -> _Pair:
    from cut_cross_entropy.indexed_dot import indexed_neg_dot_forward_kernel

    e, c, index = draw(20, 96), draw(50, 96), torch.randint(0, 50, (20,))
    out = indexed_neg_dot_forward_kernel(on(e), on(c), on(index))
    return out, -(e * c[index]).sum(1)


def torchao_int8() -> _Pair:
    from torchao.prototype.quantized_training.int8_mm import scaled_int8_mm_cuda

    a, b = (torch.randint(-128, 128, (64, 64), dtype=torch.int8) for _ in range(2))
    rows, columns = torch.rand(64) / 1e4, torch.rand(64)
    out = scaled_int8_mm_cuda(*map(on, (a, b, rows, columns)))
    return out, (a.float() @ b.float()) * rows[:, None] * columns


def torchao_fp8_rows() -> _Pair:
    from torchao.prototype.blockwise_fp8_training.kernels import (
        torch_blockwise_scale_act_quant_lhs,
        triton_fp8_blockwise_act_quant_lhs,
    )

    x = draw(32, 256)
    out, scales = triton_fp8_blockwise_act_quant_lhs(on(x))
    exact, inverse = torch_blockwise_scale_act_quant_lhs(x)
    return out.cpu().float() * scales.cpu().repeat_interleave(128, 1), exact.float() * (
        inverse.repeat_interleave(128, 1)
    )


def torchao_fp8_blocks() -> _Pair:
    from torchao.prototype.blockwise_fp8_training.kernels import (
        torch_blockwise_scale_weight_quant,
        triton_fp8_blockwise_weight_quant_rhs,
    )

    x = draw(128, 256)
    out, _ = triton_fp8_blockwise_weight_quant_rhs(on(x))
    return out, torch_blockwise_scale_weight_quant(x)[0].float()


_PREFIXES = ("liger_", "fla_", "scan_", "mlstm_", "lightning_", "cut_", "torchao_")
KERNELS: dict[str, Callable[[], _Pair]] = {
    name: function for name, function in globals().items() if name.startswith(_PREFIXES)
}

if __name__ == "__main__":
    torch.manual_seed(0)
    (name,) = sys.argv[1:]
    result, exact = KERNELS[name]()
    print(f"= {name} {float((result.cpu().float() - exact).abs().max()):.2e}")
