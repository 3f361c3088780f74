"""Send and receive between ranks, as in PyTorch's tutorial on distributed programs.

Blocking and non-blocking messages between two ranks, messages in both directions, tags out of
order, and an all-reduce round a ring of sends. Lines with a comment "PyTorch:" are those that
differ from the same program for PyTorch; the comment holds the original line.

    kernbench --sips 4 examples/pytorch_point_to_point.py
"""

import runtime.torch.distributed as dist  # PyTorch: import torch.distributed as dist
from kernbench import torch  # PyTorch: import torch

NUMEL = 16384


def blocking(rank):
    """Rank 0 sends a number to rank 1, which waits for it."""
    tensor = torch.zeros(1)
    if rank == 0:
        tensor += 1
        dist.send(tensor=tensor, dst=1)
    elif rank == 1:
        assert dist.recv(tensor=tensor, src=0) == 0
    assert tensor.item() == (1 if rank < 2 else 0)


def both_ways(rank):
    """Both ranks of a pair post the receive first, then the send."""
    peer = rank ^ 1
    if peer >= dist.get_world_size():
        return
    mine, theirs = torch.full((NUMEL,), float(rank)), torch.empty(NUMEL)
    receive = dist.irecv(theirs, src=peer)
    send = dist.isend(mine, dst=peer)
    send.wait()
    receive.wait()
    assert (theirs == peer).all()


def by_tag(rank):
    """Rank 1 receives the second message first: the tag selects it."""
    if rank == 0:
        posted = [dist.isend(torch.full((NUMEL,), 10.0 * tag), dst=1, tag=tag) for tag in (1, 2)]
        for send in posted:
            send.wait()
    elif rank == 1:
        tensor = torch.empty(NUMEL)
        for tag in (2, 1):
            dist.irecv(tensor, src=0, tag=tag).wait()
            assert tensor[0] == 10 * tag


def ring_all_reduce(send):
    """The sum of `send` over all ranks: every tensor goes once round the ring."""
    rank, size = dist.get_rank(), dist.get_world_size()
    passed, received, total = send.clone(), torch.empty_like(send), send.clone()
    left, right = (rank - 1) % size, (rank + 1) % size
    for step in range(size - 1):
        outgoing, incoming = (passed, received) if step % 2 == 0 else (received, passed)
        request = dist.isend(outgoing, right)
        dist.recv(incoming, left)
        total += incoming
        request.wait()
    return total


def main():
    """Run all four."""
    dist.init_process_group("ahbm")  # PyTorch: dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    blocking(rank)
    both_ways(rank)
    by_tag(rank)
    total = ring_all_reduce(torch.full((NUMEL,), rank + 1.0))
    assert (total == size * (size + 1) / 2).all()
    if rank == 0:
        print(f"point to point: {size} ranks, all messages right")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
