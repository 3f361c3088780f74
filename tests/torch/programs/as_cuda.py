"""A script as it is written for GPUs; its last lines are for the test."""

import io
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.nn.parallel import DistributedDataParallel

assert torch.cuda.is_available()
assert dist.is_backend_available("nccl")
local_rank = int(os.environ["LOCAL_RANK"])
device = torch.device(f"cuda:{local_rank}")
torch.cuda.set_device(device)
dist.init_process_group(backend="nccl", device_id=device)
torch.manual_seed(3)
torch.cuda.manual_seed_all(3)


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, grad):
        return grad * torch.full((1,), 2.0, device="cuda")


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(8, 8)
        self.register_buffer("mask", torch.ones(8, device=device))

    def forward(self, x):
        return Scaled.apply(self.inner(x) * self.mask)


model = DistributedDataParallel(Model().to(device), device_ids=[local_rank])
optimiser = torch.optim.AdamW(model.parameters(), lr=0.1, fused=True)
scaler = torch.cuda.amp.GradScaler(enabled=False)
losses = []
for step in range(2):
    generator = torch.Generator().manual_seed(10 * step + local_rank)
    x = torch.randn(4, 8, generator=generator).pin_memory().cuda(non_blocking=True)
    y = torch.zeros(4, 8, device="cuda")
    assert x.is_cuda
    with torch.autocast(device_type="cuda", dtype=torch.bfloat16):
        loss = nn.functional.mse_loss(model(x), y)
    scaler.scale(loss).backward()
    scaler.step(optimiser)
    scaler.update()
    optimiser.zero_grad(set_to_none=True)
    losses.append(f"{loss.item():.4f}")
side, start = torch.cuda.Stream(), torch.cuda.Event(enable_timing=True)
start.record()
with torch.cuda.stream(side):
    product = torch.arange(4.0, device=device) @ torch.ones(4).cuda(local_rank)
torch.cuda.current_stream().wait_stream(side)
torch.cuda.synchronize()
assert torch.cuda.max_memory_allocated() > 0
file = io.BytesIO()
torch.save(model.module.state_dict(), file)
file.seek(0)
state = torch.load(file, map_location=f"cuda:{local_rank}")
assert state["mask"].is_cuda
assert torch.load(io.BytesIO(file.getvalue()), map_location="cpu")["mask"].device.type == "cpu"
mesh = init_device_mesh("cuda", (dist.get_world_size(),))
total = torch.full((2,), float(local_rank + 1), device="cuda")
dist.all_reduce(total, group=mesh.get_group())
torch.set_default_device("cuda")
assert torch.zeros(1).is_cuda
torch.set_default_device("cpu")
with torch.device("cuda"):
    assert nn.Linear(2, 2).weight.is_cuda
try:
    torch.cuda.CUDAGraph()
except (RuntimeError, AssertionError, AttributeError):
    print(f"= graphs are refused on rank {local_rank}", flush=True)
compiled = torch.compile(lambda x: (x * torch.ones(4, device="cuda")).sum(), backend="aot_eager")
compiled = compiled(torch.ones(4).to("cuda")).item()
activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
with torch.profiler.profile(activities=activities) as profiled:
    torch.ones(4, device="cuda").exp()
assert "exp" in {each.name for each in profiled.events()}, "the kernel, beside aten::exp"
found = f"{losses} {product.item()} {total.tolist()} {compiled} on {total.device}"
print(f"= rank {local_rank}: {found}", flush=True)
