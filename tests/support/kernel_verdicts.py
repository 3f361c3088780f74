"""The verdicts on the kernels with races, and on their right twins.

`python -m tests.support.kernel_verdicts STEP` prints them for every STEP-th kernel, with a checksum
of the records.
"""

import sys
from collections.abc import Callable
from typing import Any
from zlib import crc32

from kernbench.explain.check.findings import Findings
from runtime import DPPolicy, torch
from tests.support.checked import CUBE, checked
from tests.support.joined import ccl_text
from tests.support.racy_blocks import BLOCKS
from tests.support.racy_grids import GRIDS
from tests.support.racy_kernels import KERNELS, SIZE, SLOTS, Kernel
from tests.support.racy_orders import ORDERS
from tests.support.world import Simulation, simulate

KERNELS_BY_NAME = KERNELS | BLOCKS | ORDERS | GRIDS
NAMES = list(KERNELS_BY_NAME)
_ONE_CUBE = DPPolicy(pe="row_wise", num_cubes=1, num_pes=4)
RING = ccl_text("pe_ring", n_slots=SLOTS)


def of_kernel(name: str, right: int, **options: Any) -> Findings:
    """The findings of a run of a kernel."""
    return checked(run_of_kernel(name, right, **options))


def run_of_kernel(name: str, right: int, **options: Any) -> Simulation:
    """A recorded run of a kernel, or of its twin."""
    return run_kernel(KERNELS_BY_NAME[name], right, grid=grid_of(name), **options)


def run_kernel(
    kernel: Kernel, right: int, *, grid: tuple[int] | None = None, **options: Any
) -> Simulation:
    """A recorded run of a kernel with these arguments on four PEs."""
    options.setdefault("topology", CUBE)
    return simulate(_launched(kernel, right, grid=grid), 1, record=True, ccl=RING, **options)


def grid_of(name: str) -> tuple[int] | None:
    """The grid of a kernel that has one."""
    return (8,) if name in GRIDS else None


def _launched(kernel: Kernel, right: int, **options: Any) -> Callable[[int], None]:
    """A program that launches a kernel on four PEs, which have queues in a ring."""

    def program(_rank: int) -> None:
        torch.distributed.init_process_group("ahbm")
        x, y = (torch.zeros(SIZE, dp=_ONE_CUBE) for _ in range(2))
        torch.launch(kernel.__name__, kernel, x, y, right, **options)
        torch.ahbm.synchronize()

    return program


def main(step: int) -> None:
    """Print the verdicts."""
    for name in NAMES[::step]:
        for right in (0, 1):
            run = run_of_kernel(name, right)
            rows = crc32(b"".join(run.rows[key] for key in sorted(run.rows)))
            print(f"{name} {right}: {len(checked(run).races)} races, {rows:08x}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
