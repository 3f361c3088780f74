"""Steps of an optimiser with a schedule of its learning rate: numbers that change in each step."""

import sys

import torch

implementation = sys.argv[1]
torch.manual_seed(0)
parameters = [torch.nn.Parameter(torch.randn(16, 24).to("ahbm")) for _ in range(2)]
optimizer = torch.optim.AdamW(parameters, lr=1e-2, **{implementation: True})
schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
for _ in range(8):
    for each in parameters:
        each.grad = each.detach() * 0.5
    optimizer.step()
    schedule.step()
    # Each step begins on an idle device.
    torch.ahbm.synchronize()
print("=", *(f"{each.detach().cpu().sum().item():.6f}" for each in parameters))
