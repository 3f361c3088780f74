"""Functions under `torch.compile` without a backend's name: each prints whether its results are
those of the eager form, and the launches of both.
"""

import torch
import torch.nn.functional as F  # noqa: N812 - the usual name
from torch import nn

from runtime.device.rank.rank_state import running_rank

D = "ahbm"
torch.manual_seed(0)
x, w = torch.randn(40, 70).to(D), torch.randn(70).to(D)
rows = torch.randint(0, 40, (13,)).to(D)


def launches(call, *given):
    torch.ahbm.synchronize()
    before = running_rank().launches
    result = call(*given)
    torch.ahbm.synchronize()
    return result, running_rank().launches - before


def show(name, function, *given, **options):
    torch.compiler.reset()
    eager, before = launches(function, *given)
    call = torch.compile(function, **options)
    call(*given)
    compiled, after = launches(call, *given)
    is_equal = torch.allclose(eager.cpu().float(), compiled.cpu().float(), rtol=1e-4, atol=1e-4)
    print(f"= {name}: equal {is_equal}, {before} launches, {after}", flush=True)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.qkv, self.out = nn.LayerNorm(32), nn.Linear(32, 96), nn.Linear(32, 32)
        self.up, self.down = nn.Linear(32, 64), nn.Linear(64, 32)

    def forward(self, x):
        heads = self.qkv(self.norm(x)).unflatten(-1, (3, 2, 16)).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(*heads, is_causal=True)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(x)))


def trained(*, compiled):
    torch.manual_seed(1)
    model = Block().to(D)
    given = torch.randn(2, 8, 32).to(D)
    call = torch.compile(lambda x: model(x).square().mean(), disable=not compiled)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses, counts = [], []

    def step():
        loss = call(given)
        loss.backward()
        return loss

    for _ in range(3):
        loss, count = launches(step)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
        counts.append(count)
    return losses, counts


def broken(x):
    y = (x * 2).amax()
    if y.item() > 1e9:
        return y
    torch._dynamo.graph_break()
    return (x + y).relu() + 1


show("fused", lambda x, w: F.gelu(x * 2 + w).sum(-1), x, w)
show("columns", lambda x: x.softmax(0).sum(1) + x.var(1), x)
show("embedding", lambda x, rows: x[rows] * 2 + 1, x, rows)
show("scatter", lambda x, rows: torch.zeros_like(x).index_add(0, rows, x[rows] * 2), x, rows)
show("dropout", lambda x: F.dropout(x, 0.0) + torch.arange(70, device=D), x)
show("a constant of the host", lambda x: x * torch.tensor(2.0) + 1, x)
show("a graph break", broken, x)
show("bits", lambda x: (x + 1).view(torch.int32) & 3, x)
show("short", lambda x: (x * 8).to(torch.int16), x)
show(
    "epilogue",
    lambda x, w, y: (F.gelu(x @ w) * y) @ w,
    *(torch.randn(n, 64).to(D) for n in (40, 64, 40)),
)
show(
    "large epilogue",
    lambda x, w: (x @ w).tanh() @ w,
    *(torch.randn(256, 256).to(D) / 16 for _ in "xw"),
)
show("max-autotune", lambda x: (x * 3 + 1).sum(-1), x, mode="max-autotune")
dynamic = torch.compile(lambda x: (x * 2 + 1).sum(-1), dynamic=True)
for count in (5, 17, 200):
    given = torch.randn(count, count + 3).to(D)
    is_equal = torch.allclose(dynamic(given).cpu(), (given * 2 + 1).sum(-1).cpu(), atol=1e-3)
    print(f"= {count} rows: equal {is_equal}", flush=True)
(eager, before), (losses, after) = (trained(compiled=each) for each in (False, True))
is_equal = torch.allclose(torch.tensor(eager), torch.tensor(losses), rtol=1e-4)
print(f"= training: equal {is_equal}, launches {sum(before)}, {sum(after)}", flush=True)
