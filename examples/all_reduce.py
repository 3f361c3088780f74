"""An all-reduce as in PyTorch: `torch.multiprocessing.spawn` starts one process per rank.

Run it with `python examples/all_reduce.py`.
"""

from kernbench import torch

dist = torch.distributed


def worker(rank: int, numel: int) -> None:
    """The program of a rank: contribute rank + 1, and expect the sum over all ranks."""
    torch.ahbm.set_device(rank)
    dist.init_process_group("ahbm")
    tensor = torch.full((numel,), rank + 1, dtype=torch.float16)
    dist.all_reduce(tensor)
    world_size = dist.get_world_size()
    assert (tensor.numpy() == world_size * (world_size + 1) // 2).all()
    if rank == 0:
        print(f"{world_size} ranks agree: {tensor}")
    dist.destroy_process_group()


if __name__ == "__main__":
    torch.multiprocessing.spawn(worker, args=(1000,), nprocs=4)
