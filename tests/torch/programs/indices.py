"""One call with an index out of bounds, the first argument names which."""

import sys

import torch
from torch.nn import functional

x = torch.arange(80.0).view(10, 8).to("ahbm")


def at(index):
    return torch.tensor([1, 3, index], device="ahbm")


CALLS = {
    "a view": lambda: functional.embedding(at(7), x[:5]),
    "two axes": lambda: x[at(1), at(8)],
    "gather": lambda: torch.gather(x, 1, at(8).view(1, 3)),
    "scatter": lambda: x.scatter(1, at(-1).view(1, 3), 1.0),
    "cross_entropy": lambda: functional.cross_entropy(x[:3], at(8)),
    "index_add": lambda: x.index_add(0, at(12), x[:3]),
}
CALLS[sys.argv[1]]()
torch.ahbm.synchronize()
