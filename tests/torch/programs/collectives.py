"""Every collective once, as a script for torchrun; prints what each rank receives."""

import os
import sys

import torch
import torch.distributed as dist

BACKEND = os.environ.get("BACKEND", "ahbm")
DEVICE = os.environ.get("DEVICE", "cpu" if BACKEND == "gloo" else BACKEND)

dist.init_process_group(BACKEND)
RANK, SIZE = dist.get_rank(), dist.get_world_size()


def report(line: str) -> None:
    """Print in one write, since the ranks share a pipe."""
    sys.stdout.write(f"= {line}\n")
    sys.stdout.flush()


def show(name: str, *tensors: torch.Tensor) -> None:
    """Print elements by the name of a collective."""
    report(f"{name} of rank {RANK}: {[each.cpu().tolist() for each in tensors]}")


def mine(count: int = 4, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Elements that differ from rank to rank."""
    return (torch.arange(count, dtype=dtype) + 10 * RANK).to(DEVICE)


def empty(count: int = 4) -> torch.Tensor:
    """A tensor to receive into."""
    return torch.zeros(count, device=DEVICE)


for op in (dist.ReduceOp.SUM, dist.ReduceOp.MAX, dist.ReduceOp.PRODUCT):
    tensor = mine()
    dist.all_reduce(tensor, op)
    show("all_reduce", tensor)
tensor = mine(dtype=torch.int64)
dist.all_reduce(tensor)
show("all_reduce of integers", tensor)
matrix = mine(6).view(2, 3).t()
dist.all_reduce(matrix)
show("all_reduce of a transposed matrix", matrix)
tensor = mine()
dist.broadcast(tensor, SIZE - 1)
show("broadcast", tensor)
tensor = mine()
dist.reduce(tensor, 0)
show("reduce", *([tensor] if not RANK else []))
tensors = [empty() for _ in range(SIZE)]
dist.all_gather(tensors, mine())
show("all_gather", *tensors)
whole = empty(4 * SIZE)
dist.all_gather_into_tensor(whole, mine())
show("all_gather_into_tensor", whole)
dist.gather(mine(), tensors if not RANK else None, dst=0)
show("gather", *(tensors if not RANK else []))
part = empty()
dist.scatter(part, [mine() + each for each in range(SIZE)] if not RANK else None, src=0)
show("scatter", part)
dist.reduce_scatter_tensor(part, mine(4 * SIZE))
show("reduce_scatter_tensor", part)
dist.all_to_all_single(whole, mine(4 * SIZE))
show("all_to_all_single", whole)
sizes = [1 + RANK] * SIZE
received = empty(sum(1 + each for each in range(SIZE)))
dist.all_to_all_single(received, mine(sum(sizes)), [1 + each for each in range(SIZE)], sizes)
show("all_to_all_single of parts", received)
work = dist.all_reduce(tensor := mine(), async_op=True)
work.wait()
show("asynchronous all_reduce", tensor)
group = dist.new_group([0, SIZE - 1])
if RANK in {0, SIZE - 1}:
    dist.all_reduce(tensor := mine(), group=group)
    show("all_reduce of a group", tensor)
requests = [
    dist.isend(mine(), (RANK + 1) % SIZE),
    dist.irecv(tensor := empty(), (RANK - 1) % SIZE),
]
for request in requests:
    request.wait()
show("ring", tensor)
objects = [None] * SIZE
dist.all_gather_object(objects, {"rank": RANK})
report(f"objects of rank {RANK}: {objects}")
dist.barrier()
dist.destroy_process_group()
