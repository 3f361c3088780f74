"""Train a block of the shape of Llama with tensor parallelism, and with sequence parallelism.

    python launch.py --sips 8 examples/torch/llama.py tp
    BACKEND=gloo torchrun --nproc-per-node 8 examples/torch/llama.py tp

`sp` keeps the residual stream divided along the sequence, and the loss along the vocabulary. Both
print the losses of `one`, which is the same model without parallelism on each rank.
"""

import argparse
import os
import sys
from contextlib import nullcontext

import torch
import torch.distributed as dist
import torch.nn.functional as F  # noqa: N812 - PyTorch's convention
from step_times import StepTimes
from torch import nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    loss_parallel,
    parallelize_module,
)

BACKEND = os.environ.get("BACKEND", "ahbm")
DEVICE = "cpu" if BACKEND == "gloo" else BACKEND
VOCABULARY, CONTEXT, WIDTH, INNER, LAYERS, STEPS = 128, 16, 128, 256, 1, 2
HEADS, KEY_HEADS, DEPTH = 16, 8, 8


def rotary_table(tokens: int, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """The cosines and sines of the angles of each position."""
    frequencies = 10000.0 ** (-torch.arange(0, DEPTH, 2, device=device) / DEPTH)
    angles = torch.outer(torch.arange(tokens, device=device, dtype=torch.float32), frequencies)
    angles = torch.cat([angles, angles], dim=-1)
    return angles.cos(), angles.sin()


def rotated(x: torch.Tensor, table: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    """Each pair of elements, turned by the angle of its position."""
    cos, sin = table
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat([-second, first], dim=-1) * sin


class Attention(nn.Module):
    """Causal attention of groups of query heads, each group to one head of keys and values."""

    def __init__(self) -> None:
        super().__init__()
        self.wq = nn.Linear(WIDTH, HEADS * DEPTH, bias=False)
        self.wk = nn.Linear(WIDTH, KEY_HEADS * DEPTH, bias=False)
        self.wv = nn.Linear(WIDTH, KEY_HEADS * DEPTH, bias=False)
        self.wo = nn.Linear(HEADS * DEPTH, WIDTH, bias=False)

    def forward(self, x: torch.Tensor, table: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        """Attention of each token to itself and all before it."""
        batch, tokens, _ = x.shape
        q, k, v = (
            project(x).view(batch, tokens, -1, DEPTH).transpose(1, 2)
            for project in (self.wq, self.wk, self.wv)
        )
        q, k = rotated(q, table), rotated(k, table)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return self.wo(y.transpose(1, 2).reshape(batch, tokens, -1))


class FeedForward(nn.Module):
    """SwiGLU."""

    def __init__(self) -> None:
        super().__init__()
        self.w1, self.w3 = (nn.Linear(WIDTH, INNER, bias=False) for _ in range(2))
        self.w2 = nn.Linear(INNER, WIDTH, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """A gated perceptron of each token."""
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class Block(nn.Module):
    """Attention and a perceptron, each behind a normalisation."""

    def __init__(self) -> None:
        super().__init__()
        self.attention_norm, self.ffn_norm = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)
        self.attention, self.feed_forward = Attention(), FeedForward()

    def forward(self, x: torch.Tensor, table: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        """The residual stream behind the block."""
        x = x + self.attention(self.attention_norm(x), table)
        return x + self.feed_forward(self.ffn_norm(x))


class Llama(nn.Module):
    """Tokens to logits."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.layers = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm, self.output = nn.RMSNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """The logits of the next token, for each token."""
        table = rotary_table(tokens.shape[1], tokens.device)
        x = self.tokens(tokens)
        for layer in self.layers:
            x = layer(x, table)
        return self.output(self.norm(x))


def tensor_parallel(model: Llama, mesh: DeviceMesh) -> None:
    """Divide heads and inner features; every rank has the whole residual stream."""
    for layer in model.layers:
        plan = {f"attention.{name}": ColwiseParallel() for name in ("wq", "wk", "wv")}
        plan |= {f"feed_forward.{name}": ColwiseParallel() for name in ("w1", "w3")}
        plan |= {"attention.wo": RowwiseParallel(), "feed_forward.w2": RowwiseParallel()}
        parallelize_module(layer, mesh, plan)


def sequence_parallel(model: Llama, mesh: DeviceMesh) -> None:
    """Divide the model like `tensor_parallel`, and its residual stream along the sequence."""
    whole = {"input_layouts": Replicate(), "output_layouts": Shard(1)}
    ends = {
        "tokens": RowwiseParallel(**whole),
        "norm": SequenceParallel(),
        "output": ColwiseParallel(input_layouts=Shard(1), use_local_output=False),
    }
    parallelize_module(model, mesh, ends)
    for layer in model.layers:
        plan = {
            "attention_norm": SequenceParallel(),
            "attention": PrepareModuleInput(
                input_layouts=(Shard(1), None), desired_input_layouts=(Replicate(), None)
            ),
            **{f"attention.{name}": ColwiseParallel() for name in ("wq", "wk", "wv")},
            "attention.wo": RowwiseParallel(output_layouts=Shard(1)),
            "ffn_norm": SequenceParallel(),
            "feed_forward": PrepareModuleInput(
                input_layouts=(Shard(1),), desired_input_layouts=(Replicate(),)
            ),
            **{f"feed_forward.{name}": ColwiseParallel() for name in ("w1", "w3")},
            "feed_forward.w2": RowwiseParallel(output_layouts=Shard(1)),
        }
        parallelize_module(layer, mesh, plan)


def train(how: str) -> StepTimes:
    """A few steps on random tokens, the same on all ranks."""
    torch.manual_seed(0)
    model, mesh = Llama().to(DEVICE), init_device_mesh(DEVICE, (dist.get_world_size(),))
    if how == "tp":
        tensor_parallel(model, mesh)
    elif how == "sp":
        sequence_parallel(model, mesh)
    # PyTorch has no operators on lists that mix distributed and other tensors.
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, foreach=how == "one")
    source, times = torch.Generator().manual_seed(0), StepTimes(DEVICE)
    for step in range(STEPS):
        text = torch.randint(0, VOCABULARY, (2, CONTEXT + 1), generator=source).to(DEVICE)
        times.part("forward")
        optimizer.zero_grad()
        with loss_parallel() if how == "sp" else nullcontext():
            logits = model(text[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1), text[:, 1:].flatten())
            times.part("backward")
            loss.backward()
        times.part("optimizer")
        optimizer.step()
        times.end()
        sys.stdout.write(f"= llama step {step} rank {dist.get_rank()} loss {loss.item():.4f}\n")
        sys.stdout.flush()
    return times


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("how", nargs="?", default="tp", choices=("tp", "sp", "one"))
    arguments = parser.parse_args()
    dist.init_process_group(BACKEND)
    measured = train(arguments.how)
    if not dist.get_rank():
        print(measured.report(), flush=True)
    dist.destroy_process_group()
