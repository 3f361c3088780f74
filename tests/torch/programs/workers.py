"""Prints who runs it, before and after PyTorch has connected the device."""

import os
import sys

# In one write, as `print` is in the processes of a run: the workers share a pipe.
sys.stdout.write(f"before rank {os.environ['RANK']}: {os.getpid()}\n")
sys.stdout.flush()

import torch  # noqa: E402 - what precedes it runs twice under torchrun
import torch.distributed as dist  # noqa: E402

dist.init_process_group("ahbm")
rank, size = dist.get_rank(), dist.get_world_size()
x = torch.ones(1, device="ahbm") * float(sys.argv[1])
dist.all_reduce(x)
print(f"= rank {rank} of {size}: {x.item()} {x.device.type} {os.getpid()}", flush=True)
for line in range(5000):
    print(f"= line {line} of rank {rank}")
