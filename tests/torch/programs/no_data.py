"""Operators, losses and optimisers of which no value decides a time; prints the simulated time
behind each. Integers decide addresses, and are known.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's convention
from torch import Tensor, nn

DRAW = torch.Generator().manual_seed(0)


def numbers(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(shape, generator=DRAW).to(dtype).to("ahbm").requires_grad_()


def integers(end: int, *shape: int) -> Tensor:
    return torch.randint(0, end, shape, generator=DRAW).to("ahbm")


def elementwise() -> Tensor:
    x, y = numbers(40, 70), numbers(70, 40).t()
    z = F.gelu(x * 2 + y).clamp(-1, 1).masked_fill(x > y, 0.5)
    return (z.to(torch.bfloat16) + torch.where(z < 0, x, y)).float()


def reductions() -> Tensor:
    x = numbers(33, 130)
    return x.sum(0).mean() + x.amax(1).sum() + torch.linalg.vector_norm(x) + x.std()


def products() -> Tensor:
    a, b, c = numbers(48, 64), numbers(64, 32), numbers(3, 32, 20)
    return (a @ b).mT.sum() + torch.bmm(c.mT, c).sum() + F.linear(a, a, a[:, 0]).sum()


def products_of_halves() -> Tensor:
    a = numbers(130, 130, dtype=torch.bfloat16)
    return (a @ a).float()


def rows() -> Tensor:
    x = numbers(20, 65)
    y = F.softmax(x, -1) + F.log_softmax(x, 0)
    return F.layer_norm(y, (65,)) + F.rms_norm(y, (65,))


def attention() -> Tensor:
    q, k, v = (numbers(2, 2, 24, 16) for _ in range(3))
    mask = torch.ones(24, 24, dtype=torch.bool, device="ahbm").tril()
    y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return y + F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


def embedding() -> Tensor:
    # Rows on many PEs, of which a PE takes several blocks.
    table = numbers(500, 40)
    text = integers(500, 3, 99)
    x = F.embedding(text[:, :-1], table) + F.embedding(torch.arange(98, device="ahbm"), table)
    bags = F.embedding_bag(text[0], table, torch.tensor([0, 40], device="ahbm"), mode="sum")
    return x.sum() + bags.sum() + F.embedding(text, table, padding_idx=3).sum()


def losses() -> Tensor:
    x, classes = numbers(30, 17), integers(17, 30)
    classes[::3] = -100
    weight = torch.rand(17, generator=DRAW).to("ahbm")
    return (
        F.cross_entropy(x, classes)
        + F.cross_entropy(x, classes, reduction="none").sum()
        + F.cross_entropy(x, classes, weight=weight, label_smoothing=0.1)
        + F.mse_loss(x, x * 2)
        + F.binary_cross_entropy_with_logits(x, (x > 0).float())
    )


def indexing() -> Tensor:
    x, i, j = numbers(30, 20), integers(30, 6), integers(20, 6)
    y = x[i, j - 20].sum() + x.gather(1, (i % 20).view(6, 1)).sum() + x.flip(0).sum()
    y = y + x[torch.arange(30, device="ahbm") % 3 == 0].sum() + x.index_select(1, j).sum()
    z = x.index_add(0, i, x[:6]).index_copy(0, i, x[:6]).index_fill(1, j, 2.0)
    z = z.index_put((i, j), x[0, 0], accumulate=True)
    return y + z.sum() + x.scatter(1, i.view(6, 1) % 20, 1.0).sum() + x.masked_fill(x > 1, 0).sum()


def of_integers() -> Tensor:
    i = integers(9, 4, 7)
    k = torch.cat([i.cumsum(1), i // 2 + torch.full_like(i, 3)], 1).to(torch.int32)
    k[1:, :2] = k[:-1, :2].clone()
    hot = F.one_hot(k.long().clamp(max=8), 9).float() * numbers(9)
    return (
        hot
        + numbers(300, 9)[k.sort(1)[0].unique().long()].sum()
        + i.flatten().bincount().float().sum()
    )


def of_unknown_integers() -> Tensor:
    x = numbers(30, 60)
    best = x.argmax(1)
    close = (x > 0).sum(1) + best + x.argsort(1)[:, 0]
    return x * (close == best).float().unsqueeze(1)


def images() -> Tensor:
    x = numbers(2, 3, 12, 12)
    y = F.batch_norm(F.conv2d(x, numbers(4, 3, 3, 3)), None, None, training=True)
    pooled = F.group_norm(F.max_pool2d(y, 2), 2)
    wide = F.interpolate(F.pad(pooled, (1, 2, 1, 1), mode="reflect"), size=(9, 11), mode="bilinear")
    return F.avg_pool2d(wide, 3, 2, 1).sum() + F.adaptive_max_pool2d(wide, (3, 4)).sum()


def recurrent() -> Tensor:
    return nn.LSTM(12, 8).to("ahbm")(numbers(5, 2, 12))[0]


def draws() -> Tensor:
    x = numbers(40, 40)
    order = torch.randperm(40, device="ahbm")
    return (
        F.dropout(x, 0.3)[order] + torch.randn(40, device="ahbm") + x.detach().sigmoid().bernoulli()
    )


def streams() -> Tensor:
    x, other = numbers(64, 64), torch.ahbm.Stream()
    other.wait_stream(torch.ahbm.current_stream())
    with torch.ahbm.stream(other):
        y = x @ x
    torch.ahbm.current_stream().wait_stream(other)
    return y + x


def optimisers() -> Tensor:
    for make in (
        lambda given: torch.optim.AdamW(given, foreach=True, amsgrad=True),
        lambda given: torch.optim.AdamW(given, fused=True),
        lambda given: torch.optim.Adam(given, foreach=False),
        lambda given: torch.optim.SGD(given, lr=0.1, momentum=0.9, nesterov=True),
        lambda given: torch.optim.SGD(given, lr=0.1, fused=True),
    ):
        model = nn.Sequential(nn.Linear(20, 30), nn.BatchNorm1d(30), nn.Linear(30, 5)).to("ahbm")
        optimizer = make(model.parameters())
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 5)
        for _ in range(2):
            optimizer.zero_grad()
            with torch.autocast("ahbm", torch.bfloat16):
                loss = model(numbers(8, 20)).square().mean()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
    return loss.detach()


CASES: dict[str, Callable[[], Tensor]] = {
    case.__name__: case
    for case in (
        *(elementwise, reductions, products, products_of_halves, rows, attention, embedding),
        *(losses, indexing, of_integers, of_unknown_integers, images, recurrent, draws, streams),
        optimisers,
    )
}

if __name__ == "__main__":
    for name, case in CASES.items():
        result = case().sum()
        if result.requires_grad:
            result.backward()
        torch.ahbm.synchronize()
        print("=", name, torch.ahbm.now_ns(), flush=True)
