"""Small programs that call kernels of the device of PyTorch, an operator in each."""

from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch.nn import functional

from tests.races.covering_programs import Program, simulated

HALF = torch.bfloat16


def drawn(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Random elements."""
    generator = torch.Generator().manual_seed(1)
    return torch.randn(shape, generator=generator).to(dtype).to("ahbm")


def classes(count: int, rows: int) -> torch.Tensor:
    """Random numbers below `count`."""
    generator = torch.Generator().manual_seed(1)
    return torch.randint(0, count, (rows,), generator=generator).to("ahbm")


def with_gradient(
    function: Callable[[Sequence[torch.Tensor]], torch.Tensor], *operands: torch.Tensor
) -> None:
    """A function of operands, and the gradients of the sum of its results."""
    for each in operands:
        each.requires_grad_()
    torch.autograd.backward(function(operands).float().sum())


OPERATORS: dict[str, Callable[[], object]] = {
    "copy": lambda: drawn(64, 40).T.clone(memory_format=torch.contiguous_format),
    "add": lambda: drawn(64, 40) + drawn(64, 40),
    "softmax": lambda: with_gradient(
        lambda of: functional.softmax(of[0], -1) * drawn(20, 300), drawn(20, 300)
    ),
    "softmax of long rows": lambda: functional.softmax(drawn(3, 100_000), -1),
    "layer norm": lambda: with_gradient(
        lambda of: functional.layer_norm(of[0], (300,)), drawn(20, 300)
    ),
    "layer norm of long rows": lambda: functional.layer_norm(drawn(3, 100_000), (100_000,)),
    "layer norm of many rows": lambda: functional.layer_norm(
        drawn(2048, 512), (512,), drawn(512), drawn(512)
    ),
    "sum of rows": lambda: drawn(200, 300).sum(0),
    "sum of all": lambda: drawn(200, 300).sum(),
    "cross entropy": lambda: with_gradient(
        lambda of: functional.cross_entropy(of[0], classes(500, 40)), drawn(40, 500)
    ),
    "cross entropy of many classes": lambda: with_gradient(
        lambda of: functional.cross_entropy(of[0], classes(50_000, 8)), drawn(8, 50_000)
    ),
    "sort": lambda: drawn(3, 500).sort(),
    "sort on the host": lambda: drawn(3, 5000).sort(),
    "top of many": lambda: drawn(3, 5000).topk(7),
    "embedding": lambda: with_gradient(
        lambda of: functional.embedding(classes(100, 50), of[0]), drawn(100, 64)
    ),
    "index_add": lambda: drawn(100, 64).index_add(0, classes(100, 50), drawn(50, 64)),
    "many rows added": lambda: drawn(100, 300).index_add(0, classes(100, 4000), drawn(4000, 300)),
    "rows stored": lambda: drawn(100, 64).index_put_((classes(100, 50),), drawn(50, 64)),
    "interpolate": lambda: functional.interpolate(
        drawn(2, 3, 20, 20), scale_factor=1.7, mode="bilinear"
    ),
    "pool": lambda: functional.avg_pool2d(drawn(2, 3, 20, 20), 3),
    "adaptive pool": lambda: functional.adaptive_avg_pool2d(drawn(2, 3, 20, 20), 7),
    "attention": lambda: with_gradient(
        lambda of: functional.scaled_dot_product_attention(of[0], of[1], of[2], is_causal=True),
        *(drawn(1, 4, 100, 64, dtype=HALF) for _ in range(3)),
    ),
    "convolution": lambda: functional.conv2d(drawn(2, 3, 20, 20), drawn(8, 3, 3, 3)),
    "cumsum": lambda: drawn(3, 5000).cumsum(-1),
    "product": lambda: drawn(33, 1000) @ drawn(1000, 257),
    "product in bfloat16": lambda: drawn(33, 1000, dtype=HALF) @ drawn(1000, 257, dtype=HALF),
    "product of one row": lambda: drawn(1, 1024, dtype=HALF) @ drawn(1024, 1024, dtype=HALF),
    "product of a transposed operand": lambda: functional.linear(
        drawn(300, 512, dtype=HALF), drawn(300, 512, dtype=HALF), drawn(300, dtype=HALF)
    ),
    "product with a copied operand": lambda: functional.linear(
        drawn(128, 1024, dtype=HALF), drawn(1024, 1024, dtype=HALF), drawn(1024, dtype=HALF)
    ),
    "product of deep operands": lambda: (
        drawn(16, 20_000, dtype=HALF) @ drawn(20_000, 64, dtype=HALF)
    ),
    "large product": lambda: drawn(1024, 1024, dtype=HALF) @ drawn(1024, 1024, dtype=HALF),
    "products of a batch": lambda: drawn(8, 33, 100) @ drawn(8, 100, 50),
}


def of_pytorch() -> dict[str, Program]:
    """The program of each operator, for the only rank that a process ever has."""

    def program(_rank: int, name: str) -> object:
        # Imported in a rank, to which it connects the device.
        from kernbench.torch_backend.connection import connect

        connect()
        return OPERATORS[name]()

    return {
        f"PyTorch: {name}": partial(simulated, partial(program, name=name), 1) for name in OPERATORS
    }
