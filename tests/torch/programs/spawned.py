"""A script that starts its processes by torch.multiprocessing: spawned.py FORM [PROCESSES].

With BACKEND=gloo the device is the CPU.
"""

import os
import sys
import threading

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.distributed import rpc
from torch.utils.data import DataLoader, Dataset

BACKEND = os.environ.get("BACKEND", "ahbm")
DEVICE = "cpu" if BACKEND == "gloo" else BACKEND


def show(text: str) -> None:
    sys.stdout.write(f"= {text}\n")
    sys.stdout.flush()


def attempt(function, *given) -> None:
    try:
        function(*given)
    except RuntimeError as error:
        show(f"{type(error).__name__}: {error}")


def train(rank: int, size: int) -> None:
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ.setdefault("MASTER_PORT", "12355")
    dist.init_process_group(BACKEND, rank=rank, world_size=size)
    x = torch.ones(3, device=DEVICE) * (rank + 1)
    dist.all_reduce(x)
    show(f"rank {rank} of {size}: {x.tolist()}")
    dist.destroy_process_group()


def child(rank: int, size: int) -> None:
    attempt(train, rank, size)
    attempt(lambda: torch.ones(3, device=DEVICE))
    attempt(lambda: torch.ones(2).to(DEVICE))
    show(f"sum on the CPU: {torch.ones(2).sum().item()}")


class Squares(Dataset):
    def __len__(self) -> int:
        return 6

    def __getitem__(self, index: int) -> torch.Tensor:
        with torch.profiler.record_function("load"):
            return torch.randn(1) * 0 + index**2


def load(method: str) -> None:
    batches = DataLoader(Squares(), batch_size=3, num_workers=1, multiprocessing_context=method)
    show(f"{method}: {[each.to(DEVICE).sum().item() for each in batches]}")


def in_thread() -> None:
    thread = threading.Thread(target=attempt, args=(lambda: torch.ones(2).to(DEVICE),), name="T")
    thread.start()
    thread.join()


if __name__ == "__main__":
    form, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 2
    if form == "ranks":
        mp.spawn(train, args=(count,), nprocs=count, join=True)
        while not mp.spawn(show, nprocs=count, join=False).join():
            pass
    elif form == "workers":
        load("fork")
        load("spawn")
    elif form == "thread":
        in_thread()
    elif form == "remote":
        mp.spawn(lambda rank: attempt(rpc.init_rpc, f"worker{rank}"), nprocs=count)
    else:
        process = mp.get_context(form).Process(target=child, args=(1, count))
        process.start()
        process.join()
        show(f"exit code {process.exitcode}")
