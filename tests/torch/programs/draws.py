"""Random draws of every distribution and operators on the host; the digest of the run has them."""

import torch
from torch import nn

torch.manual_seed(4)
DEVICE = "ahbm"
for size in (3, 5, 16, 33, 5000):
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        x = torch.empty(size, dtype=dtype, device=DEVICE)
        for draw in (
            *(x.normal_, x.uniform_, x.bernoulli_, x.exponential_, x.cauchy_, x.random_),
            *(x.log_normal_, lambda x=x: x.geometric_(0.3), lambda x=x: x.uniform_(-1.7, 2.3)),
        ):
            draw()
            x.cpu()
layer = nn.Linear(64, 64, device=DEVICE)
nn.init.trunc_normal_(layer.weight)
chosen = torch.multinomial(torch.rand(4, 20, device=DEVICE), 3)
torch.normal(torch.randn(40, device=DEVICE), torch.rand(40, device=DEVICE) + 1).cpu()
torch.bernoulli(torch.rand(40, device=DEVICE)).cpu()
nn.functional.dropout(layer.weight, 0.3).cpu()
torch.arange(9, device=DEVICE).nonzero()
