"""Training steps that leave tensors in reference cycles; prints losses, the memory in use and the
addresses of new tensors. With `THRESHOLD` Python's collector runs after as many allocations.
"""

import gc
import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard

if "THRESHOLD" in os.environ:
    gc.set_threshold(int(os.environ["THRESHOLD"]))
    gc.enable()

dist.init_process_group("ahbm")
torch.manual_seed(0)
layers = [nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 16)).to("ahbm") for _ in "ab"]
models = [fully_shard(layers[0]), nn.parallel.DistributedDataParallel(layers[1])]
for step in range(3):
    for model in models:
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
        loss = model(torch.randn(8, 16, device="ahbm")).square().mean()
        cycle: list[object] = [loss, torch.empty(1000, device="ahbm")]
        cycle.append(cycle)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    del cycle
    gc.collect()
    fresh = [torch.empty(1000, device="ahbm").data_ptr(), torch.empty(16, device="ahbm").data_ptr()]
    values = [step, round(loss.item(), 5), torch.ahbm.memory_allocated(), fresh]
    sys.stdout.write(f"= rank {dist.get_rank()}: {values}\n")
    sys.stdout.flush()
dist.destroy_process_group()
