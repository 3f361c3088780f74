"""A loop over collectives and sizes with times and bandwidths, in the manner of nccl-tests.

The bus bandwidth is the data that a link of an ideal ring carries, per time. Times are simulated
times between two events. Lines with a comment "PyTorch:" are those that differ from the same
program for PyTorch; the comment holds the original line.

    kernbench --sips 4 examples/pytorch_nccl_tests.py
"""

import numpy as np

import runtime.torch.distributed as dist  # PyTorch: import torch.distributed as dist
from kernbench import torch  # PyTorch: import torch, time

ITERATIONS = 2


def all_reduce(rank, ranks, numel):
    """The operation, its check, and the factor of its bus bandwidth."""
    tensor = torch.full((numel,), rank + 1.0)
    return (
        lambda: dist.all_reduce(tensor),
        # The first one sums different elements; each further one multiplies equal ones.
        lambda: tensor.numpy() / ranks**ITERATIONS == ranks * (ranks + 1) / 2,
        2 * (ranks - 1) / ranks,
    )


def all_gather(rank, ranks, numel):
    """The calls and the factor of an all-gather; the size is that of the output."""
    source, gathered = torch.full((numel // ranks,), rank + 1.0), torch.empty(numel)
    return (
        lambda: dist.all_gather_into_tensor(gathered, source),
        lambda: gathered.numpy() == np.repeat(np.arange(1, ranks + 1), numel // ranks),
        (ranks - 1) / ranks,
    )


def reduce_scatter(rank, ranks, numel):
    """The calls and the factor of a reduce-scatter; the size is that of the input."""
    source, part = torch.full((numel,), rank + 1.0), torch.empty(numel // ranks)
    return (
        lambda: dist.reduce_scatter_tensor(part, source),
        lambda: part.numpy() == ranks * (ranks + 1) / 2,
        (ranks - 1) / ranks,
    )


def all_to_all(rank, ranks, numel):
    """The calls and the factor of an all-to-all."""
    source, received = torch.full((numel,), rank + 1.0), torch.empty(numel)
    return (
        lambda: dist.all_to_all_single(received, source),
        lambda: received.numpy() == np.repeat(np.arange(1, ranks + 1), numel // ranks),
        (ranks - 1) / ranks,
    )


def seconds_of(operation):
    """Time of one operation: the mean of some, after one that is not counted."""
    operation()
    dist.barrier()
    start = torch.ahbm.Event(enable_timing=True)  # PyTorch:
    end = torch.ahbm.Event(enable_timing=True)  # PyTorch:
    start.record()  # PyTorch: start = time.perf_counter()
    for _ in range(ITERATIONS):
        operation()
    end.record()  # PyTorch: end = time.perf_counter()
    end.synchronize()  # PyTorch:
    return start.elapsed_time(end) / 1e3 / ITERATIONS  # PyTorch: return (end - start) / ITERATIONS


def main():
    """One table over all collectives and sizes."""
    dist.init_process_group("ahbm")  # PyTorch: dist.init_process_group("gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    if rank == 0:
        print(f"{'collective':>16} {'bytes':>9} {'us':>10} {'algbw':>8} {'busbw':>8} GB/s")
    for collective in (all_reduce, all_gather, reduce_scatter, all_to_all):
        for nbytes in (4096, 65536):
            operation, is_right, factor = collective(rank, ranks, nbytes // 4)
            seconds = seconds_of(operation)
            assert is_right().all(), f"{collective.__name__} of {nbytes} bytes"
            if rank == 0:
                algbw = nbytes / seconds / 1e9
                print(
                    f"{collective.__name__:>16} {nbytes:>9} {seconds * 1e6:>10.3f} "
                    f"{algbw:>8.2f} {algbw * factor:>8.2f}"
                )
    if rank == 0:
        print(f"nccl-tests: {ranks} ranks, all results right")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
