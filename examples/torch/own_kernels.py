"""Train a small Llama whose RMSNorm and attention are kernels of this file.

    kernbench run --sips 2 examples/torch/own_kernels.py
    kernbench run --sips 2 examples/torch/own_kernels.py plain
    BACKEND=gloo torchrun --nproc-per-node 2 examples/torch/own_kernels.py plain

The model is that of Hugging Face where transformers is installed, else that of `llama.py`. All
print the same losses; `plain` uses the operators of PyTorch.
"""

import os
import sys
from importlib.util import find_spec

import torch
import torch.distributed as dist
import torch.nn.functional as F  # noqa: N812 - PyTorch's convention
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import kernbench
from kernbench import tl

BACKEND = os.environ.get("BACKEND", "ahbm")
DEVICE = "cpu" if BACKEND == "gloo" else BACKEND
VOCABULARY, TOKENS, STEPS = 128, 16, 3
ROWS = 8
"""Rows of a block of a kernel."""
dense_attention = F.scaled_dot_product_attention


def norm_formula(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """RMSNorm of the last axis, from which PyTorch derives the gradient."""
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * weight


@kernbench.kernel(
    "own::rms_norm",
    outputs="y",
    sizes={"rows": lambda x: x.shape[:-1].numel(), "columns": lambda x: x.shape[-1]},
    reference=norm_formula,
)
def rms_norm(
    x: tl.Pointer, weight: tl.Pointer, y: tl.Pointer, rows: int, columns: int, eps: float
) -> None:
    """Kernel: the rows of a program, of which each PE that holds a part of `y` runs one."""
    program, programs = tl.program_id(0), tl.num_programs(0)
    first, last = rows * program // programs, rows * (program + 1) // programs
    starts = range(first, last, ROWS)
    loads = [tl.load_async(x + row * columns, (min(ROWS, last - row), columns)) for row in starts]
    scale = tl.load(weight, (1, columns))
    for row, load in zip(starts, loads, strict=True):
        values = load.wait()
        mean = tl.sum(values * values, axis=1, keep_dims=True) * (1 / columns)
        tl.store_async(y + row * columns, values * tl.rsqrt(mean + eps) * scale)


def attention_formula(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float
) -> torch.Tensor:
    """Causal attention, the heads of a token side by side."""
    y = dense_attention(q, k, v, is_causal=True, scale=scale, enable_gqa=True)
    return y.transpose(1, 2)


@kernbench.kernel(
    "own::attention",
    outputs="y",
    grid=lambda q: (q.shape[1], q.shape[2] // ROWS, q.shape[0]),
    sizes={
        "groups": lambda k: k.shape[1],
        "tokens": lambda q: q.shape[2],
        "depth": lambda q: q.shape[3],
    },
    reference=attention_formula,
)
def attention(  # noqa: PLR0917 - the arguments of a launch are positional
    q: tl.Pointer,
    k: tl.Pointer,
    v: tl.Pointer,
    y: tl.Pointer,
    groups: int,
    tokens: int,
    depth: int,
    scale: float,
) -> None:
    """Kernel: a head, a block of `ROWS` queries, and all keys up to the last one of these."""
    head, first, batch = tl.program_id(0), tl.program_id(1) * ROWS, tl.program_id(2)
    heads, seen = tl.num_programs(0), first + ROWS
    queries = tl.load(q + ((batch * heads + head) * tokens + first) * depth, (ROWS, depth))
    shared = (batch * groups + head * groups // heads) * tokens * depth
    keys, values = (tl.load(each + shared, (seen, depth)) for each in (k, v))
    is_past = tl.arange(0, seen)[None, :] <= tl.arange(first, seen)[:, None]
    scores = tl.where(is_past, tl.dot(queries, keys.T) * scale, float("-inf"))
    start = ((batch * tokens + first) * heads + head) * depth
    tl.store(y + start, tl.dot(tl.softmax(scores, axis=1), values), (heads * depth, 1))


def hugging_face_llama(*, own: bool) -> nn.Module:
    """`LlamaForCausalLM` with random weights."""
    from transformers import AttentionInterface, LlamaConfig, LlamaForCausalLM
    from transformers.models.llama.modeling_llama import LlamaRMSNorm

    if own:
        LlamaRMSNorm.forward = lambda self, x: rms_norm(x, self.weight, self.variance_epsilon)
        AttentionInterface.register(
            "own", lambda _module, q, k, v, _mask, scaling, **_: (attention(q, k, v, scaling), None)
        )
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=8,
        num_key_value_heads=4,
        attn_implementation="own" if own else "sdpa",
    )
    return LlamaForCausalLM(config)


def small_llama(*, own: bool) -> nn.Module:
    """The model of `llama.py`, which calls the functions of PyTorch."""
    from llama import Llama

    if own:
        nn.RMSNorm.forward = lambda self, x: rms_norm(x, self.weight, torch.finfo(x.dtype).eps)
        F.scaled_dot_product_attention = lambda q, k, v, **_: attention(
            q, k, v, q.shape[-1] ** -0.5
        ).transpose(1, 2)
    return Llama()


def train(*, own: bool) -> None:
    """A few steps on random tokens, with other tokens on each rank."""
    torch.manual_seed(0)
    has_transformers = find_spec("transformers") is not None
    make = hugging_face_llama if has_transformers else small_llama
    model = DistributedDataParallel(make(own=own).to(DEVICE))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    source = torch.Generator().manual_seed(dist.get_rank())
    for step in range(STEPS):
        text = torch.randint(0, VOCABULARY, (2, TOKENS + 1), generator=source).to(DEVICE)
        optimizer.zero_grad()
        result = model(text[:, :-1])
        logits = result.logits if has_transformers else result
        loss = F.cross_entropy(logits.flatten(0, 1), text[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        sys.stdout.write(f"= llama step {step} rank {dist.get_rank()} loss {loss.item():.6f}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    dist.init_process_group(BACKEND)
    train(own="plain" not in sys.argv[1:])
    dist.destroy_process_group()
