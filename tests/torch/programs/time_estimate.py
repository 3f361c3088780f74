"""The estimated time of an all-reduce beside that of the same all-reduce between two events."""

import torch
import torch.distributed as dist

dist.init_process_group("ahbm")
x = torch.ones(1 << 18, device="ahbm")
other = torch.ones(1 << 18, device="ahbm")
# The first call installs queues, and maps memory.
for each in (x, other):
    dist.all_reduce(each)
with dist._time_estimator() as estimator:
    dist.all_reduce(x)
unchanged = x.min().item() == x.max().item() == dist.get_world_size()
work = dist.all_reduce(other, async_op=True)
dist.barrier()
[command] = [each.handle for each in work._works]
measured_us = (command.device_done_ps - command.released_ps) / 1e6
print(f"= {estimator.estimated_time:.6f} {measured_us:.6f} {unchanged}", flush=True)
with dist._time_estimator() as estimator:
    pass
assert estimator.estimated_time == 0
