"""Operators of the device against those of the CPU; prints a line for each case."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's convention
from outcomes import print_outcomes

from kernbench.torch_backend.aten.operators import FALLBACKS

torch.manual_seed(0)
X, Y, Z = torch.randn(300, 70), torch.randn(70, 40), torch.randn(2, 3, 5)
MASK, CLASSES = torch.rand(300, 70) > 0.5, torch.randint(0, 70, (300,))
FEW = torch.tensor([3, 9, 0, 41, 7])
UNUSUAL = X[:9].detach().clone()
UNUSUAL[1:7, 3:60:9] = torch.tensor([torch.nan, torch.inf, -torch.inf, torch.nan, 0.5, -0.0, 0.0])
LONG = torch.randint(-9, 9, (300, 70))
WIDE = torch.randn(40, 5000)
SQUARE = torch.randn(2048, 2048)
LARGE, OTHER = torch.randn(256, 1024), torch.randn(512, 1024)
Case = Callable[..., torch.Tensor]
CASES: dict[str, tuple[Case, tuple[torch.Tensor, ...]]] = {
    "add": (lambda x: x + x, (X,)),
    "alpha": (lambda x: torch.add(x, x, alpha=0.25), (X,)),
    "numbers": (lambda x: (x * 2.5 - 1) / 3, (X,)),
    "column": (lambda x: x * x[:, :1], (X,)),
    "row wider than the registers": (
        lambda x: x.bfloat16() + x[0].bfloat16() * x[:, :1],
        (WIDE[:8],),
    ),
    "row": (lambda x: x + x[0], (X,)),
    "transposed": (lambda x: x.t() * 2, (X,)),
    "transposed copy": (lambda x: x.t().contiguous(), (X,)),
    "transposed beside straight": (lambda x: x[:70] + x[:70].t(), (X,)),
    "permuted": (lambda x: x.permute(2, 0, 1).contiguous(), (Z,)),
    "overlapping windows": (lambda x: x[0].unfold(0, 9, 1).clone(), (X,)),
    "transposed windows": (lambda x: x.view(-1).unfold(0, 70, 9).t() * 2, (X[:60],)),
    "windows of a window": (lambda x: x[:3].unfold(1, 8, 5).unfold(2, 3, 2) + 1, (X,)),
    "convolution of one sequence": (lambda x: F.conv1d(x[:4], x[:12, :20].view(3, 4, 20)), (X,)),
    "strides": (lambda x: x[::3, 1::2] + 1, (X,)),
    "expanded": (lambda x: x[:, :1].expand(300, 9).contiguous(), (X,)),
    "write to columns": (lambda x: _with(x.clone(), lambda y: y[:, 5:9].add_(3)), (X,)),
    "write to rows": (lambda x: _with(x.clone(), lambda y: y[7:99:4].mul_(x[:23])), (X,)),
    "compared": (lambda x: (x > 0).float(), (X,)),
    "integers": (lambda x: x * 3 - x, (LONG,)),
    "integer quotient": (lambda x: x / 4, (LONG,)),
    "bytes": (lambda x: x.to(torch.int8) + 1, (LONG,)),
    "short integers on the host": (lambda x: x.to(torch.int16) + 1, (LONG,)),
    "bfloat16": (lambda x: x.bfloat16() * 3 + x.bfloat16(), (X,)),
    "float16": (lambda x: x.half().exp(), (X,)),
    "float64": (lambda x: x.double() / 3, (X,)),
    "where": (lambda x, m: torch.where(m, x, 0.0), (X, MASK)),
    "masked_fill": (lambda x, m: x.masked_fill(m, float("-inf")), (X, MASK)),
    "numbers that float64 rounds": (
        lambda x, m: (x + (2**60 + 1)).masked_fill(m, 2**62 + 1).clamp(max=2**63 - 1),
        (LONG, MASK),
    ),
    "integer powers of a column": (lambda x: x[:, :1] ** x.abs() + x ** x[:, :1].abs(), (LONG,)),
    "logical": (lambda x, m: (m & (x > 0)) | ~m, (X, MASK)),
    "clamp": (lambda x: x.clamp(-1, 0.5), (X,)),
    "powers": (lambda x: x**2 + x**3, (X,)),
    "power": (lambda x: x.abs() ** 1.5, (X,)),
    "gelu": (F.gelu, (X,)),
    "gelu tanh": (lambda x: F.gelu(x, approximate="tanh"), (X,)),
    "silu": (F.silu, (X,)),
    "sum": (lambda x: x.sum(), (X,)),
    "sum of rows": (lambda x: x.sum(1), (X,)),
    "sum of columns": (lambda x: x.sum(0, keepdim=True), (X,)),
    "sum of all": (lambda x: x.sum(), (WIDE,)),
    "sum of rows on all PEs": (lambda x: x.sum(0), (LARGE,)),
    "mean of all": (lambda x: x.mean(), (WIDE,)),
    "mean of rows": (lambda x: x.bfloat16().mean(0), (WIDE,)),
    "sum of integers": (lambda x: x.sum(), (LONG,)),
    "sum of two axes": (lambda x: x.sum((0, 2)), (Z,)),
    "sum of many columns": (lambda x: x.sum(0), (WIDE,)),
    "mean": (lambda x: x.mean(1), (X,)),
    "greatest": (lambda x: x.amax(1), (X,)),
    "least": (lambda x: x.min(), (X,)),
    "any": (lambda x: (x > 3).any(), (X,)),
    "norm": (lambda x: x.norm(), (X,)),
    "norm of rows": (lambda x: torch.linalg.vector_norm(x, dim=1), (X,)),
    "mm": (lambda x, y: x @ y, (X, Y)),
    "mm transposed": (lambda x, y: y.t() @ x.t(), (X, Y)),
    "mm in cubes": (lambda x, y: x @ y.view(1024, 512), (LARGE, OTHER)),
    "linear in cubes": (lambda x, y: F.linear(x, y, x[0, :512]), (LARGE, OTHER)),
    "linear of few rows": (
        lambda x, w: F.linear(x, w.detach()).mean(1),
        (WIDE[:32, :2048], SQUARE),
    ),
    "mm of a slice": (lambda x, y: x[:, :30] @ y[:30], (X, Y)),
    "addmm": (lambda x, y: torch.addmm(y[0], x, y), (X, Y)),
    "addmm scaled": (lambda x, y: torch.addmm(y[0], x, y, beta=0.5, alpha=2), (X, Y)),
    "bmm": (lambda x: x @ x.transpose(1, 2), (Z,)),
    "bmm of views": (lambda x: x.view(10, 30, 70)[:, ::2] @ x.view(10, 30, 70)[:, 3:9].mT, (X,)),
    "baddbmm": (lambda x: torch.baddbmm(x[:1, :, :3], x, x.mT, beta=2, alpha=0.5), (Z,)),
    "mm in parts": (
        lambda x: x.view(-1)[:16384].view(64, 256) @ x.view(-1)[:1024].view(256, 4),
        (X,),
    ),
    "mm in a view": (
        lambda x: torch.mm(x[:70].detach(), x[:70].detach(), out=x.new_empty(70, 99)[:, 9:79]),
        (X,),
    ),
    "dot": (lambda x: x[:, 0] @ x[:, 1], (X,)),
    "mm of long panels": (lambda x: x @ x.view(5000, 40), (WIDE,)),
    "linear of long panels": (lambda x: F.linear(x, x[:33], x[0, :33]), (WIDE,)),
    "mm of one repeated element": (lambda x: x[0, 0].expand(1, 1) @ x[:1] + x[:1].sum(), (X,)),
    "linear to one feature": (lambda x: F.linear(x[:1], x[1:2], x[2, :1]), (X,)),
    "mv": (lambda x, y: x @ y[:, 0], (X, Y)),
    "bfloat16 mm": (lambda x, y: x.bfloat16() @ y.bfloat16(), (X, Y)),
    "int8 mm": (
        lambda x: torch._int_mm(x.to(torch.int8) * 9, x.to(torch.int8).t().contiguous() * 7),
        (LONG[:40],),
    ),
    "softmax": (lambda x: x.softmax(1), (X,)),
    "log_softmax": (lambda x: x.log_softmax(0), (X,)),
    "layer_norm": (lambda x: F.layer_norm(x, (70,), x[0], x[1]), (X,)),
    "wide layer_norm": (lambda x: F.layer_norm(x, (5000,), x[0], x[1]), (WIDE[:8],)),
    "cross_entropy": (F.cross_entropy, (X, CLASSES)),
    "mse": (lambda x: F.mse_loss(x, x.flip(0)), (X,)),
    "mse of each": (lambda x: F.mse_loss(x, x.flip(0), reduction="none"), (X,)),
    "smooth l1": (lambda x: F.smooth_l1_loss(x, x.flip(0) * 2, beta=0.7), (X,)),
    "smooth l1 sum": (lambda x: F.smooth_l1_loss(x, x.flip(0), reduction="sum"), (Z,)),
    "huber": (lambda x: F.huber_loss(x, x.flip(0) * 2, delta=0.6), (X,)),
    "huber of each": (lambda x: F.huber_loss(x, x.flip(0), reduction="none"), (X,)),
    "binary cross entropy": (
        lambda x, m: F.binary_cross_entropy(x.sigmoid(), m.float()),
        (X, MASK),
    ),
    "weighted binary cross entropy": (
        lambda x, m: F.binary_cross_entropy(x.sigmoid(), m.float(), m + 0.5, reduction="sum"),
        (X, MASK),
    ),
    "certain binary cross entropy": (
        lambda x, m: F.binary_cross_entropy((x > 0).float(), m.float(), reduction="none"),
        (X, MASK),
    ),
    "binary cross entropy with logits": (
        lambda x, m: F.binary_cross_entropy_with_logits(x * 9, m.float(), pos_weight=m[0] + 0.5),
        (X, MASK),
    ),
    "log sigmoid": (lambda x: F.logsigmoid(x * 20), (X,)),
    "linspace": (lambda x: x * torch.linspace(-1, 2, 70, device=x.device), (X,)),
    "embedding": (lambda x, c: F.embedding(c, x[:70]), (X, CLASSES)),
    "index_select": (lambda x, c: x.index_select(1, c[:9]), (X, CLASSES)),
    "rows by number": (lambda x, c: x[c], (X, CLASSES)),
    "elements by two numbers": (lambda x, c: x[c, c - 70], (X, CLASSES)),
    "columns by number": (lambda x, c: x[:, c[:9]], (X, CLASSES)),
    "axes by number": (lambda x, c: x[:, c[:4] % 3, c[:4] % 5], (Z, CLASSES)),
    "rows by mask": (lambda x, m: x[m[:, 0]], (X, MASK)),
    "rows by a matrix of numbers": (lambda x, c: x[c.view(30, 10)], (X, CLASSES)),
    "elements by a column and a matrix": (
        lambda x, c: x[c[:30, None], c.view(30, 10)],
        (X, CLASSES),
    ),
    "written by a matrix of numbers": (
        lambda x, c: x.index_put((c.view(30, 10),), x[0] * 2, accumulate=True),
        (X, CLASSES),
    ),
    "written rows": (lambda x, c: x.index_put((c[:5],), x[:5] * 2), (X, CLASSES)),
    "written columns": (lambda x, c: x.clone().t().index_put_((c[:1],), x[:, 0]), (X, CLASSES)),
    "written by mask": (lambda x, m: x.index_put((m,), x.new_tensor(2.0)), (X, MASK)),
    "index_add": (lambda x, c: torch.zeros_like(x).index_add(0, c, x, alpha=2), (X, CLASSES)),
    "index_add of columns": (
        lambda x, c: torch.zeros_like(x).index_add(1, c[:70], x),
        (X, CLASSES),
    ),
    "gather": (lambda x, c: x.gather(0, c[:60].view(3, 20)), (X, CLASSES)),
    "gather of columns": (lambda x, c: x.gather(1, c[:, None]), (X, CLASSES)),
    "topk": (lambda x: x.topk(4, 1)[0], (X,)),
    "topk indices": (lambda x: x.topk(3, 0, largest=False)[1], (X,)),
    "bfloat16 topk": (lambda x: x.bfloat16()[:, :9].topk(2)[0], (X,)),
    "argmax": (lambda x: x.argmax(1), (X,)),
    "argmin of all": (lambda x: x.argmin(), (X,)),
    "argmax of integers": (lambda x: x.argmax(0, keepdim=True), (LONG,)),
    "max and index": (lambda x: x.max(1)[0] + x.min(0, keepdim=True)[0].sum(), (X,)),
    "scatter": (lambda x, c: torch.zeros_like(x).scatter(1, c[:, None], x[:, :1]), (X, CLASSES)),
    "scatter a number": (lambda x, c: x.scatter(1, c[:, None], 3.0), (X, CLASSES)),
    "scatter_add": (
        lambda x, c: x.scatter_add(1, c[:, None].expand(300, 3), x[:, :3]),
        (X, CLASSES),
    ),
    "one_hot": (lambda c: F.one_hot(c, 70), (CLASSES,)),
    "cumsum": (lambda x: x.cumsum(0), (X,)),
    "cumsum of integers": (lambda x: x.cumsum(1), (LONG,)),
    "bincount": (lambda c: c.bincount(minlength=99), (CLASSES,)),
    "flip": (lambda x: x.flip(0, 1), (X,)),
    "roll": (lambda x: x.roll((3, -1), (0, 1)) + x.roll(5), (X,)),
    "floor_divide": (lambda x: x // 3 + x % 4, (LONG,)),
    "floor_divide of floats": (lambda x: x.detach() // 0.3, (X,)),
    "truncated quotient": (lambda x: torch.div(x, 4, rounding_mode="trunc"), (LONG,)),
    "fused Adam": (lambda x: _optimised(torch.optim.Adam, x), (X,)),
    "fused AdamW": (lambda x: _optimised(torch.optim.AdamW, x, amsgrad=True), (X,)),
    "fused SGD": (lambda x: _optimised(torch.optim.SGD, x), (X,)),
    "fused SGD with momentum": (
        lambda x: _optimised(torch.optim.SGD, x, momentum=0.9, dampening=0.2),
        (X,),
    ),
    "fused SGD of Nesterov": (
        lambda x: _optimised(torch.optim.SGD, x, momentum=0.9, nesterov=True, maximize=True),
        (X,),
    ),
    "scaled fused SGD": (lambda x: _optimised(torch.optim.SGD, x, scaled=True), (X,)),
    "scaled fused Adam": (lambda x: _optimised(torch.optim.Adam, x, scaled=True), (X,)),
    "leaky_relu": (lambda x: F.leaky_relu(x, 0.2), (X,)),
    "elu": (lambda x: F.elu(x, 1.5) + F.elu(x.clone(), inplace=True) + F.selu(x), (X,)),
    "softplus": (lambda x: F.softplus(x * 9, beta=2), (X,)),
    "power of a number": (lambda x: 2.5**x, (X,)),
    "xlogy": (lambda x: torch.xlogy(x, x.detach().abs() + 1) + torch.xlogy(2.5, x.abs()), (X,)),
    "variance": (lambda x: x.var(1) + x.var(0, correction=0, keepdim=True).sum(), (X,)),
    "deviation": (lambda x: x.std() + torch.std_mean(x, 0)[0], (X,)),
    "variance and mean": (lambda x: sum(torch.var_mean(x, (0, 2))), (Z,)),
    "cat": (lambda x: torch.cat([x, x[:, :3]], 1), (X,)),
    "stack": (lambda x: torch.stack([x, x + 1], 1), (X,)),
    "resized": (lambda x: x.clone().detach().resize_(21210)[:21000] + 1, (X,)),
    "tril": (lambda x: x.tril(-1), (X,)),
    "sort": (lambda x: x.sort(1)[0], (X[:40],)),
    "sort of columns": (lambda x: x.sort(0, descending=True)[0], (X[:128, :20],)),
    "sort with NaN": (lambda x: x.sort(1, descending=True)[0].isnan(), (UNUSUAL,)),
    "places of NaN": (lambda x: x.argsort(stable=True), (UNUSUAL,)),
    "places of equal integers": (lambda x: x.argsort(stable=True, descending=True), (LONG[:40],)),
    "sort of parts of rows": (lambda x: x.detach().sort()[1], (WIDE[:3, :500],)),
    "sort of bools": (lambda m: m.sort(stable=True)[1], (MASK[:40],)),
    "sort on the host": (lambda x: x.sort(1)[0], (WIDE[:3],)),
    "topk of many": (lambda x: x.detach().topk(66)[0], (X[:40],)),
    "cumprod": (lambda x: (1 + x / 9).cumprod(1), (X,)),
    "cumprod of integers": (lambda x: x.cumprod(0), (LONG[:14],)),
    "index_copy": (lambda x, c: x.index_copy(1, c, x[:, 60:65]), (X, FEW)),
    "index_fill": (lambda x, c: x.index_fill(0, c, 2.5), (X, FEW)),
    "scatter of bools": (lambda m, c: m.scatter(1, c.expand(300, 5), False), (MASK, FEW)),
    "any of bools": (lambda m: m.max(1)[1], (MASK,)),
    "one sample": (lambda x: _seeded(x.softmax(1).detach().multinomial, 1), (X,)),
    "samples": (lambda x: _seeded(x.softmax(1).detach().multinomial, 20), (X,)),
    "repeated samples": (lambda x: _seeded(x[0].softmax(0).detach().multinomial, 90, True), (X,)),
    "bags": (lambda x, c: F.embedding_bag(c, x[:70], c[:3].sort()[0] - c[:3].min()), (X, CLASSES)),
    "sums of weighted bags": (
        lambda x, c: F.embedding_bag(
            c, x[:70], c[:1] * 0, mode="sum", per_sample_weights=x.detach()[:, 0]
        ),
        (X, CLASSES),
    ),
    "padded bags": (
        lambda x, c: F.embedding_bag(c.view(30, 10), x[:70], padding_idx=3),
        (X, CLASSES),
    ),
    "constants": (
        lambda x: (
            x[tuple(torch.tril_indices(9, 9, -1, device=x.device))]
            + torch.eye(36, 70, device=x.device)[:, 3:4]
        ),
        (X,),
    ),
    "weight norm": (lambda x: torch._weight_norm(x, x[:, :1], 0), (X,)),
    "rotary positions": (lambda x, y: _rotated(x.view(40, 35, 2), y[0, :35].detach()), (X[:40], Y)),
    "complex arithmetic": (lambda x: _complex(x.view(40, 35, 2)), (X[:40],)),
    "complex in place": (
        lambda x: _with(x.detach().clone(), lambda y: _pairs(y).mul_(_pairs(y).conj() + 2j)),
        (X[:40],),
    ),
    "type view": (lambda x: x.view(torch.int32) + 1, (X,)),
    "empty": (lambda x: x[:0] + 1, (X,)),
    "number": (lambda x: x[3, 4] * 2, (X,)),
    "batch_norm": (lambda x: _batch_norm(x, x[0], x[1]), (torch.randn(6, 4, 5),)),
    "group_norm": (
        lambda x: F.group_norm(x, 2, x[0, :, 0], x[1, :, 0]),
        (torch.randn(3, 6, 5),),
    ),
    "max_pool": (
        lambda x: F.max_pool2d(x, (3, 2), (2, 1), 1, (1, 2), ceil_mode=True),
        (torch.randn(2, 3, 8, 7),),
    ),
    "convolution": (
        lambda x, y: F.conv2d(x, y, x[0, 0, 0, :4], (2, 1), 1, (1, 2), 2),
        (torch.randn(2, 4, 9, 8), torch.randn(4, 2, 3, 3)),
    ),
    "convolution of three axes": (
        F.conv3d,
        (torch.randn(2, 2, 4, 5, 4), torch.randn(3, 2, 2, 2, 2)),
    ),
    "transposed convolution": (
        lambda x, y: F.conv_transpose2d(x, y, None, 2, 1, 1, 2),
        (torch.randn(2, 4, 5, 4), torch.randn(4, 3, 3, 3)),
    ),
    "attention": (lambda x: _attention(x[:, :64].reshape(300, 4, 16), is_causal=True), (X,)),
    "attention of all": (lambda x: _attention(x[:, :64].reshape(300, 4, 16), scale=0.3), (X,)),
    "attention in groups": (
        lambda x: F.scaled_dot_product_attention(
            x[None, :50, :64].view(1, 50, 8, 8).transpose(1, 2),
            *[x[None, 50:, :16].reshape(1, 250, 2, 8).transpose(1, 2)] * 2,
            enable_gqa=True,
        ),
        (X,),
    ),
    "attention of a token": (
        lambda x: F.scaled_dot_product_attention(x[None, None, :1], *[x[None, None]] * 2),
        (X,),
    ),
    "bfloat16 attention": (
        lambda x: _attention(x[:90, :64].bfloat16().reshape(90, 1, 64), is_causal=True),
        (X,),
    ),
    "attention with a mask": (
        lambda x: _attention(x[:70, :64].reshape(70, 4, 16), attn_mask=x[:70]),
        (X,),
    ),
}


def _attention(x: torch.Tensor, **options: object) -> torch.Tensor:
    heads = x.transpose(0, 1)[None]
    y = F.scaled_dot_product_attention(heads, heads * 0.5, heads + 1, **options)
    return y.transpose(1, 2).flatten(2)


def _optimised(
    kind: type[torch.optim.Optimizer], x: torch.Tensor, *, scaled: bool = False, **options: Any
) -> torch.Tensor:
    """The parameters after some steps; with a scaler, of which the second one has an infinity."""
    parameters = [each.detach().clone().requires_grad_() for each in (x, x[0], x[0, 0])]
    optimizer = kind(parameters, lr=1e-2, weight_decay=0.1, fused=True, **options)
    scaler = torch.amp.GradScaler(x.device.type, init_scale=8.0, enabled=scaled)
    for step, factor in enumerate((0.5, -3.0, 1.0)):
        scale = scaler.scale(torch.ones((), device=x.device))
        for each in parameters:
            each.grad = (each.detach() * factor + 1) * scale
        if scaled and step == 1:
            parameters[1].grad[3] = torch.inf
        scaler.step(optimizer)
        scaler.update()
    return torch.cat([each.detach().flatten() for each in parameters])


def _seeded(draw: Callable[..., torch.Tensor], *arguments: object) -> torch.Tensor:
    torch.manual_seed(5)
    return draw(*arguments)


def _pairs(x: torch.Tensor) -> torch.Tensor:
    return torch.view_as_complex(x.view(40, 35, 2))


def _rotated(x: torch.Tensor, angles: torch.Tensor) -> torch.Tensor:
    turns = torch.polar(torch.ones_like(angles), angles)
    return torch.view_as_real(torch.view_as_complex(x) * turns)[:, 3:]


def _complex(x: torch.Tensor) -> torch.Tensor:
    z = torch.view_as_complex(x)
    w = (z * z.conj() - 2 * z + (1 - 2j)) / (z + 20) + z.real
    return torch.view_as_real(w.sum(1) + z.abs().sum() - z.sum())


def _with(tensor: torch.Tensor, change: Callable[[torch.Tensor], object]) -> torch.Tensor:
    change(tensor)
    return tensor


def _batch_norm(x: torch.Tensor, *vectors: torch.Tensor) -> torch.Tensor:
    """The result below the running statistics that the operator has written."""
    weight, bias = (each[:, 0] for each in vectors)
    mean, variance = (torch.full((4,), value, device=x.device) for value in (0.5, 2.0))
    y = F.batch_norm(x, mean, variance, weight, bias, training=True)
    z = F.batch_norm(x, mean, variance, weight, bias)
    return torch.cat([mean, variance, y.flatten(), z.flatten()])


def compare(name: str) -> str:
    """The gradients and the result of a case on both devices."""
    function, operands = CASES[name]
    found = []
    for device in ("cpu", "ahbm"):
        own = [
            each.clone().to(device).requires_grad_(each.is_floating_point()) for each in operands
        ]
        result = function(*own)
        assert result.device.type == device, f"the result is on {result.device}"
        if result.requires_grad:
            result.float().square().sum().backward()
        found.append(
            [result.detach().cpu(), *(each.grad.cpu() for each in own if each.grad is not None)]
        )
    small = found[0][0].dtype in {torch.float16, torch.bfloat16}
    for expected, actual in zip(*found, strict=True):
        # Sums have another order: float32 rounds by 2^-24, in sums of about 300 terms.
        largest = expected.double().abs().max().item() if expected.numel() else 0
        share = 2e-2 if small else 5e-6
        torch.testing.assert_close(actual, expected, rtol=share, atol=share * largest)
    return "ok"


if __name__ == "__main__":
    print_outcomes(CASES, compare, FALLBACKS)
