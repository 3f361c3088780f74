"""Launches of Triton kernels: their grid, their constants, `@triton.autotune` and
`@triton.heuristics`.
"""

from collections.abc import Callable, Sequence
from typing import Any

from kernbench.triton.interpreter import connected
from kernbench.triton.triton_call import TritonCall
from kernbench.triton.triton_kernel import BoundKernel, TritonKernel
from kernbench.triton.tuning import tuned
from runtime.core.program_grid import ProgramGrid, checked_grid

Launch = Callable[[TritonKernel, Sequence[Any], ProgramGrid], Any]
"""Queues a kernel with its arguments that are no constants."""


def launched(call: TritonCall, launch: Launch, *, timed: Callable[[Callable[[], Any]], int]) -> Any:
    """Queue a kernel; `timed` returns the simulated time of a launch, for `@triton.autotune`."""
    connected()
    kernel = call.kernel
    # Packages derive classes of their own.
    kinds = [each.__name__ for each in type(kernel).__mro__]
    if "Autotuner" in kinds:

        def time_ps(trial: TritonCall) -> int:
            return timed(lambda: launched(trial, launch, timed=timed))

        return launched(tuned(call, time_ps), launch, timed=timed)
    if "Heuristics" in kinds:
        return launched(_with_heuristics(call), launch, timed=timed)
    if "InterpretedFunction" not in kinds:
        raise TypeError(
            f"{kinds[0]} is no kernel of Triton's interpreter: import triton in the program of the "
            "rank, after the run has begun"
        )
    bound = BoundKernel(kernel, call.arguments, call.options)
    grid = call.grid(dict(bound.arguments)) if callable(call.grid) else call.grid
    made, arguments = bound.kernel()
    return launch(made, arguments, grid_of(kernel.fn.__name__, grid))


def grid_of(name: str, grid: Any) -> ProgramGrid:
    """The grid of a launch; Triton's own may be an integer."""
    lengths = (grid,) if isinstance(grid, int) else grid
    try:
        return checked_grid(lengths)
    except (TypeError, ValueError) as error:
        raise type(error)(f"kernel {name!r} with {error}") from None


def _with_heuristics(call: TritonCall) -> TritonCall:
    options = dict(call.options)
    for name, function in call.kernel.values.items():
        options[name] = function(call._replace(options=options).named())
    return call.inner(options)
