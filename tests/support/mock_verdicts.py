"""The kernels with races under the mock runtime, whose launches are checked."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kernbench.explain.mock.recorded_launch import RecordedLaunch
from runtime.ccl.config import parse_ccl
from runtime.ccl.plan import plan_of_one_sip
from runtime.language import mock
from runtime.language.value import Array
from tests.support.kernel_verdicts import KERNELS_BY_NAME, RING, grid_of
from tests.support.racy_kernels import PES, SIZE, Kernel
from tests.support.topologies import small

_CUBE = small(sip__cube_mesh={"w": 1, "h": 1})


def ring() -> mock.InstalledQueues:
    """The queues of the kernels on the chip."""
    return plan_of_one_sip("joined", _CUBE, parse_ccl(RING, "ccl.yaml"))


def launched(kernel: Callable[..., object], *arguments: object, **options: Any) -> RecordedLaunch:
    """The records of a launch under the mock runtime, which reports nothing itself."""
    launches = list[RecordedLaunch]()

    def keep(launch: RecordedLaunch) -> None:
        launches.append(launch)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RecordedLaunch, "check", keep)
        mock.launch(kernel, *arguments, check=True, **options)
    [launch] = launches
    return launch


def launch_of_kernel(name: str, right: int) -> RecordedLaunch:
    """A launch of a kernel, or of its twin."""
    return launch_kernel(KERNELS_BY_NAME[name], right, grid=grid_of(name))


def launch_kernel(kernel: Kernel, right: int, *, grid: tuple[int] | None = None) -> RecordedLaunch:
    """A launch of a kernel with these arguments on four PEs."""
    options = {"queues": ring()} if grid is None else {"grid": grid}
    return launched(kernel, zeros(SIZE), zeros(SIZE), right, pes=PES, **options)


def zeros(count: int) -> Array:
    """An array for a kernel."""
    return np.zeros(count, np.float32)
