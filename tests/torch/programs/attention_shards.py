"""Attention of distributed tensors against that of a CPU: prints a line for each placement of the
operands: the placement of the result, and the greatest difference of it and of all gradients.
"""

import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's convention
from torch import Tensor
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor

MESH = init_device_mesh("ahbm", (2,))
CASES = {
    "batches": [Shard(0)] * 3,
    "heads": [Shard(1)] * 3,
    "copies": [Replicate()] * 3,
    "tokens": [Shard(2)] * 3,
    "heads of queries alone": [Shard(1), Replicate(), Replicate()],
    "three heads": [Shard(1)] * 3,
}


def attended(operands: list[Tensor], *, is_causal: bool) -> list[Tensor]:
    """The result, and the gradients of its square."""
    result = F.scaled_dot_product_attention(*operands, is_causal=is_causal)
    return [result, *torch.autograd.grad(result.square().sum(), operands)]


torch.manual_seed(0)
for name, placements in CASES.items():
    heads = 3 if name == "three heads" else 4
    given = [torch.randn(2, heads, 8, 16) for _ in range(3)]
    for is_causal in (False, True):
        expected = attended([each.clone().requires_grad_() for each in given], is_causal=is_causal)
        operands = [
            distribute_tensor(each.to("ahbm"), MESH, [placement]).requires_grad_()
            for each, placement in zip(given, placements, strict=True)
        ]
        own = attended(operands, is_causal=is_causal)
        difference = max(
            (a.full_tensor().cpu() - b).abs().max().item()
            for a, b in zip(own, expected, strict=True)
        )
        print(f"= {name} | {own[0].placements[0]} | {difference:.1e}", flush=True)
