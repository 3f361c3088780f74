"""Calls with an index out of bounds. The first argument names one, which the program does not
catch; without it the program catches the errors of all, and goes on.
"""

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
if len(sys.argv) > 1:
    CALLS[sys.argv[1]]()
    torch.ahbm.synchronize()
else:
    waits = [torch.ahbm.synchronize, lambda: x.sum().item(), x.cpu]
    for number, (name, call) in enumerate(CALLS.items()):
        try:
            call()
            waits[number % len(waits)]()
        except IndexError as error:
            notes = getattr(error, "__notes__", [])
            assert all(" launched at " in each and "indices.py:" in each for each in notes)
            print(f"= {name}: {error}")
        assert x[at(2)].tolist() == [x[row].tolist() for row in (1, 3, 2)]
    print("= the end")
