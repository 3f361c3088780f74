"""Ranks started by the program itself, which find each other by environment variables.

`spawn` starts one process per rank; each calls `init_process_group` with `env://`, its rank and the
world size. Lines with a comment "PyTorch:" are those that differ from the same program for PyTorch;
the comment holds the original line.

    python examples/pytorch_spawn.py
"""

import os
import sys

import runtime.torch.distributed as dist  # PyTorch: import torch.distributed as dist
import runtime.torch.multiprocessing as mp  # PyTorch: import torch.multiprocessing as mp
from kernbench import torch  # PyTorch: import torch


def worker(rank, world_size, numel):
    """One rank: contribute rank + 1, and check what the collectives give."""
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = "29501"
    dist.init_process_group(
        "ahbm",  # PyTorch: "gloo",
        init_method="env://",
        rank=rank,
        world_size=world_size,
    )
    assert dist.is_initialized()
    assert dist.get_rank() == rank
    assert dist.get_world_size() == world_size

    tensor = torch.ones(numel) * (rank + 1)
    dist.all_reduce(tensor, op=dist.ReduceOp.SUM)
    assert (tensor == world_size * (world_size + 1) / 2).all()

    settings = [{"rate": 0.5, "steps": [1, 2, 3]} if rank == 0 else None]
    dist.broadcast_object_list(settings, src=0)
    assert settings == [{"rate": 0.5, "steps": [1, 2, 3]}]

    parts = [torch.zeros(2) for _ in range(world_size)]
    dist.all_gather(parts, torch.tensor([rank, rank + 0.5]))
    assert [part.tolist() for part in parts] == [[r, r + 0.5] for r in range(world_size)]

    even = dist.new_group(list(range(0, world_size, 2)))
    if rank % 2 == 0:
        count = torch.ones(1)
        dist.all_reduce(count, group=even)
        assert count.item() == (world_size + 1) // 2
    dist.barrier()
    if rank == 0:
        print(f"spawn: {world_size} ranks of env:// agree")
    dist.destroy_process_group()


if __name__ == "__main__":
    ranks = int(sys.argv[1]) if len(sys.argv) > 1 else 4
    mp.spawn(worker, args=(ranks, 1000), nprocs=ranks, join=True)
