"""Train a small GPT with DistributedDataParallel, FSDP2 or tensor parallelism.

    python launch.py --sips 2 examples/torch/gpt.py ddp
    BACKEND=gloo torchrun --nproc-per-node 2 examples/torch/gpt.py ddp

Both print the same losses; on the device, the simulated time of a step as well.
"""

import argparse
import os
import sys

import torch
import torch.distributed as dist
import torch.nn.functional as F  # noqa: N812 - PyTorch's convention
from step_times import StepTimes
from torch import nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)
from torch.nn.parallel import DistributedDataParallel

BACKEND = os.environ.get("BACKEND", "ahbm")
DEVICE = "cpu" if BACKEND == "gloo" else BACKEND
VOCABULARY, CONTEXT, WIDTH, HEADS, LAYERS, STEPS = 64, 16, 64, 4, 2, 2


class Attention(nn.Module):
    """Causal self-attention; a rank has as many heads as its projections have columns."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.out = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Attention of each token to itself and all before it."""
        batch, tokens, _ = x.shape
        heads = (
            project(x).view(batch, tokens, -1, WIDTH // HEADS).transpose(1, 2)
            for project in (self.q, self.k, self.v)
        )
        y = F.scaled_dot_product_attention(*heads, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(batch, tokens, -1))


class Block(nn.Module):
    """Attention and a perceptron, each behind a normalisation."""

    def __init__(self) -> None:
        super().__init__()
        self.norm_1, self.norm_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention = Attention()
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The residual stream behind the block."""
        x = x + self.attention(self.norm_1(x))
        return x + self.down(F.gelu(self.up(self.norm_2(x))))


class Gpt(nn.Module):
    """Tokens to logits."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """The logits of the next token, for each token."""
        x = self.tokens(tokens) + self.places(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def parallel(model: Gpt, how: str, mesh: DeviceMesh) -> nn.Module:
    """The model over the ranks of a mesh."""
    if how == "ddp":
        return DistributedDataParallel(model)
    for block in model.blocks:
        if how == "fsdp":
            fully_shard(block, mesh=mesh)
        else:
            plan = {f"attention.{name}": ColwiseParallel() for name in "qkv"}
            plan |= {"attention.out": RowwiseParallel()}
            plan |= {"up": ColwiseParallel(), "down": RowwiseParallel()}
            parallelize_module(block, mesh, plan)
    return fully_shard(model, mesh=mesh) if how == "fsdp" else model


def train(how: str) -> StepTimes:
    """A few steps on random tokens: those of the rank, or the same for all with `tp`."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = parallel(Gpt().to(DEVICE), how, init_device_mesh(DEVICE, (ranks,)))
    # PyTorch has no operators on lists that mix distributed and other tensors.
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, foreach=how != "tp")
    source = torch.Generator().manual_seed(0 if how == "tp" else rank)
    times = StepTimes(DEVICE)
    for step in range(STEPS):
        text = torch.randint(0, VOCABULARY, (2, CONTEXT + 1), generator=source).to(DEVICE)
        optimizer.zero_grad()
        times.part("forward")
        logits = model(text[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), text[:, 1:].flatten())
        times.part("backward")
        loss.backward()
        times.part("optimizer")
        optimizer.step()
        times.end()
        sys.stdout.write(f"= {how} step {step} rank {rank} loss {loss.item():.4f}\n")
        sys.stdout.flush()
    return times


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("how", nargs="?", default="ddp", choices=("ddp", "fsdp", "tp"))
    arguments = parser.parse_args()
    dist.init_process_group(BACKEND)
    measured = train(arguments.how)
    if not dist.get_rank():
        print(measured.report(), flush=True)
    dist.destroy_process_group()
