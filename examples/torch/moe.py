"""Train a mixture of experts whose experts are dealt over the ranks.

    python launch.py --sips 4 examples/torch/moe.py
    BACKEND=gloo torchrun --nproc-per-node 4 examples/torch/moe.py

A router sends each token to its two best experts. How many tokens a rank sends to each other one is
known at run time only: ranks exchange the numbers first, then the tokens in parts of these sizes.
"""

import os
import sys

import torch
import torch.distributed as dist
import torch.nn.functional as F  # noqa: N812 - PyTorch's convention
from step_times import StepTimes
from torch import nn
from torch.distributed._functional_collectives import all_to_all_single

BACKEND = os.environ.get("BACKEND", "ahbm")
DEVICE = "cpu" if BACKEND == "gloo" else BACKEND
TOKENS, WIDTH, INNER, EXPERTS, CHOSEN, STEPS = 64, 64, 128, 8, 2, 2


class Expert(nn.Module):
    """SwiGLU."""

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.up = (nn.Linear(WIDTH, INNER, bias=False) for _ in range(2))
        self.down = nn.Linear(INNER, WIDTH, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """A gated perceptron of each token."""
        return self.down(F.silu(self.gate(x)) * self.up(x))


class MixtureOfExperts(nn.Module):
    """A router, which all ranks have, and the experts of this rank."""

    def __init__(self) -> None:
        super().__init__()
        self.router = nn.Linear(WIDTH, EXPERTS, bias=False)
        experts = [Expert() for _ in range(EXPERTS)]
        own = EXPERTS // dist.get_world_size()
        first = own * dist.get_rank()
        self.experts = nn.ModuleList(experts[first : first + own])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The sum of the outputs of a token's experts, weighted by the router."""
        weights, chosen = self.router(x).softmax(dim=-1).topk(CHOSEN, dim=-1)
        weights = weights / weights.sum(dim=-1, keepdim=True)
        # Copies of tokens in the order of their experts, so in the order of ranks.
        order = chosen.flatten().argsort(stable=True)
        rows = order // CHOSEN
        counts = torch.bincount(chosen.flatten(), minlength=EXPERTS)
        arriving = torch.empty_like(counts)
        own = [len(self.experts)] * dist.get_world_size()
        dist.all_to_all_single(arriving, counts, own, own)
        counts, arriving = (each.view(-1, len(self.experts)).cpu() for each in (counts, arriving))
        sent, received = counts.sum(dim=1).tolist(), arriving.sum(dim=1).tolist()
        tokens = all_to_all_single(x[rows], received, sent, dist.group.WORLD)
        results = self._computed(tokens, arriving)
        results = all_to_all_single(results, sent, received, dist.group.WORLD)
        results = results * weights.flatten()[order].unsqueeze(1)
        return torch.zeros_like(x).index_add(0, rows, results)

    def _computed(self, tokens: torch.Tensor, arriving: torch.Tensor) -> torch.Tensor:
        """Tokens through their experts: they lie by rank, and within a rank by expert."""
        parts = tokens.split(arriving.flatten().tolist())
        ranks, own = arriving.shape
        results: list[torch.Tensor] = [tokens] * len(parts)
        for number, expert in enumerate(self.experts):
            mine = range(number, ranks * own, own)
            output = expert(torch.cat([parts[each] for each in mine]))
            for each, result in zip(mine, output.split(arriving[:, number].tolist()), strict=True):
                results[each] = result
        return torch.cat(results)


def train() -> StepTimes:
    """A few steps towards a random target; the tokens of the ranks differ."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = MixtureOfExperts().to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    source, times = torch.Generator().manual_seed(1 + rank), StepTimes(DEVICE)
    for step in range(STEPS):
        x, target = torch.randn(2, TOKENS, WIDTH, generator=source).to(DEVICE)
        optimizer.zero_grad()
        times.part("forward")
        loss = F.mse_loss(model(x), target)
        times.part("backward")
        loss.backward()
        # Experts have the gradients of the tokens of all ranks already.
        dist.all_reduce(model.router.weight.grad)
        for parameter in model.parameters():
            parameter.grad /= ranks
        times.part("optimizer")
        optimizer.step()
        times.end()
        sys.stdout.write(f"= moe step {step} rank {rank} loss {loss.item():.4f}\n")
        sys.stdout.flush()
    return times


if __name__ == "__main__":
    dist.init_process_group(BACKEND)
    measured = train()
    if not dist.get_rank():
        print(measured.report(), flush=True)
    dist.destroy_process_group()
