"""Two errors that no simulation shows by its numbers, and `kernbench check` finds: a race, since
nothing orders the PEs, and a use of memory that nothing has written.

kernbench --sips 1 --check-races examples/races.py
"""

from kernbench import DPPolicy, tl, torch

PART = 64
"""Elements of each PE."""


def smooth(x: tl.Pointer) -> None:
    """Add the last element of the part before to each element of the own part."""
    own = x + tl.program_id(0) * PART
    before = tl.load(own - 1 if tl.program_id(0) else own, 1)
    tl.store(own, tl.load(own, PART) + before)


def increment(total: tl.Pointer) -> None:
    """Add 1."""
    tl.store(total, tl.load(total, 1) + 1)


x = torch.ones(8 * PART, dp=DPPolicy(pe="row_wise", num_cubes=1))
total = torch.empty(1, dp=DPPolicy(num_cubes=1, num_pes=1))
torch.launch("smooth", smooth, x)
torch.launch("increment", increment, total)
torch.ahbm.synchronize()
