"""A product in a range, between two events, and an optimiser, whose range is PyTorch's own."""

import torch
from torch.profiler import record_function

weight = torch.ones(128, 128, device="ahbm", requires_grad=True)
x = torch.ones(128, 128, device="ahbm")
optimiser = torch.optim.SGD([weight], 0.1)
for _ in range(2):
    # The second pass has its memory mapped.
    optimiser.zero_grad()
    start, end = (torch.ahbm.Event(enable_timing=True) for _ in range(2))
    start.record()
    with record_function("product"):
        y = x @ weight
    end.record()
    torch.ahbm.synchronize()
    y.sum().backward()
    optimiser.step()
print(f"= {1e6 * start.elapsed_time(end):.3f}")
