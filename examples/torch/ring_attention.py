"""Train causal attention over a sequence that is divided over the ranks.

    python launch.py --sips 4 examples/torch/ring_attention.py
    BACKEND=gloo torchrun --nproc-per-node 4 examples/torch/ring_attention.py

Keys and values pass round a ring of ranks, while each rank computes with those that it has: the
exchange runs beside the products. Partial results are combined by their sums of exponentials. The
gradients of keys and values pass round with them. Each rank also computes the whole attention, and
prints by how much its part differs.
"""

import os
import sys
from collections.abc import Iterator
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F  # noqa: N812 - PyTorch's convention
from step_times import StepTimes
from torch import nn

BACKEND = os.environ.get("BACKEND", "ahbm")
DEVICE = "cpu" if BACKEND == "gloo" else BACKEND
TOKENS, WIDTH, HEADS, STEPS = 128, 64, 4, 2


class Round:
    """Tensors on their way to the next rank, and those that arrive from the previous rank."""

    def __init__(self, *tensors: torch.Tensor) -> None:
        rank, ranks = dist.get_rank(), dist.get_world_size()
        self._sent = [each.contiguous() for each in tensors]
        self._received = [torch.empty_like(each) for each in self._sent]
        ends = [
            *(dist.P2POp(dist.isend, each, (rank + 1) % ranks) for each in self._sent),
            *(dist.P2POp(dist.irecv, each, (rank - 1) % ranks) for each in self._received),
        ]
        self._requests = dist.batch_isend_irecv(ends)

    def arrived(self) -> list[torch.Tensor]:
        """The tensors of the previous rank."""
        for request in self._requests:
            request.wait()
        return self._received


def passing(k: torch.Tensor, v: torch.Tensor) -> Iterator[tuple[int, torch.Tensor, torch.Tensor]]:
    """The keys and values of each rank with its number, from this one backwards; while the caller
    uses one pair, the next one is on its way.
    """
    rank, ranks = dist.get_rank(), dist.get_world_size()
    for step in range(ranks):
        ahead = Round(k, v) if step < ranks - 1 else None
        yield (rank - step) % ranks, k, v
        if ahead is not None:
            k, v = ahead.arrived()


def scores(q: torch.Tensor, k: torch.Tensor, *, is_diagonal: bool) -> torch.Tensor:
    """The scaled products of queries and keys; of the same positions, none with later keys."""
    products = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
    if not is_diagonal:
        return products
    later = torch.ones(products.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
    return products.masked_fill(later, float("-inf"))


class RingAttention(torch.autograd.Function):
    """Causal attention of the queries of this rank to the keys and values of all ranks."""

    @staticmethod
    def forward(ctx: Any, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        """Tensors (batch, heads, tokens, depth); rank r has part r of the sequence."""
        rank = dist.get_rank()
        output, total = torch.zeros_like(q), torch.zeros_like(q[..., :1])
        largest = torch.full_like(total, float("-inf"))
        for source, keys, values in passing(k, v):
            if source > rank:
                continue
            products = scores(q, keys, is_diagonal=source == rank)
            raised = torch.maximum(largest, products.amax(dim=-1, keepdim=True))
            weights, kept = (products - raised).exp(), (largest - raised).exp()
            total = total * kept + weights.sum(dim=-1, keepdim=True)
            output = output * kept + weights @ values
            largest = raised
        output = output / total
        ctx.save_for_backward(q, k, v, output, largest + total.log())
        return output

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Gradients of queries stay, those of keys and values arrive at the rank that has them."""
        q, k, v, output, logarithm = ctx.saved_tensors
        (grad,), rank, ranks = gradients, dist.get_rank(), dist.get_world_size()
        along, scale = (grad * output).sum(dim=-1, keepdim=True), q.shape[-1] ** -0.5
        of_q, on_their_way = torch.zeros_like(q), None
        for source, keys, values in passing(k, v):
            of_k, of_v = torch.zeros_like(k), torch.zeros_like(v)
            if source <= rank:
                weights = (scores(q, keys, is_diagonal=source == rank) - logarithm).exp()
                slope = weights * (grad @ values.transpose(-2, -1) - along) * scale
                of_q = of_q + slope @ keys
                of_k = slope.transpose(-2, -1) @ q
                of_v = weights.transpose(-2, -1) @ grad
            if on_their_way is not None:
                # What the ranks before have computed for the same keys and values.
                of_k, of_v = (
                    each + other
                    for each, other in zip((of_k, of_v), on_their_way.arrived(), strict=True)
                )
            on_their_way = Round(of_k, of_v) if ranks > 1 else None
        if on_their_way is not None:
            of_k, of_v = on_their_way.arrived()
        return of_q, of_k, of_v


class Attention(nn.Module):
    """Projections, and attention over the sequence of all ranks."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def heads(self, x: torch.Tensor) -> Iterator[torch.Tensor]:
        """Queries, keys and values of the heads."""
        shape = (*x.shape[:-1], HEADS, WIDTH // HEADS)
        return (each.view(shape).transpose(1, 2) for each in self.qkv(x).chunk(3, dim=-1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The part of this rank."""
        y = RingAttention.apply(*self.heads(x))
        return self.out(y.transpose(1, 2).reshape(x.shape))


def check(model: Attention, x: torch.Tensor) -> None:
    """Compare with attention to the whole sequence on one rank."""
    rank, tokens = dist.get_rank(), TOKENS // dist.get_world_size()
    with torch.no_grad():
        part = RingAttention.apply(*model.heads(x[:, rank * tokens : (rank + 1) * tokens]))
        whole = F.scaled_dot_product_attention(*model.heads(x), is_causal=True)
    difference = (part - whole[:, :, rank * tokens : (rank + 1) * tokens]).abs().max().item()
    sys.stdout.write(f"= ring rank {rank} equals the whole attention: {difference < 1e-5}\n")


def train() -> StepTimes:
    """A few steps towards a random target; a rank has its part of the sequence."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = Attention().to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    source, times = torch.Generator().manual_seed(1), StepTimes(DEVICE)
    for step in range(STEPS):
        text, target = torch.randn(2, 1, TOKENS, WIDTH, generator=source)
        x, y = (each.chunk(ranks, dim=1)[rank].to(DEVICE) for each in (text, target))
        optimizer.zero_grad()
        times.part("forward")
        loss = F.mse_loss(model(x), y)
        times.part("backward")
        loss.backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
            parameter.grad /= ranks
        times.part("optimizer")
        optimizer.step()
        times.end()
        sys.stdout.write(f"= ring step {step} rank {rank} loss {loss.item():.4f}\n")
        sys.stdout.flush()
    check(model, text.to(DEVICE))
    return times


if __name__ == "__main__":
    dist.init_process_group(BACKEND)
    measured = train()
    if not dist.get_rank():
        print(measured.report(), flush=True)
    dist.destroy_process_group()
