"""`torch.launch` of a Triton kernel, on tensors of the small torch."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kernbench.triton.element_report import ElementReport
from kernbench.triton.launching import launched
from kernbench.triton.triton_call import TritonCall
from kernbench.triton.triton_kernel import TritonKernel
from runtime.core.device import Handle
from runtime.core.program_grid import ProgramGrid
from runtime.device.launches.launch import launch_on
from runtime.device.memory.stored_tensor import StoredTensor
from runtime.device.rank.rank_state import running_rank
from runtime.language.value import Pointer


def launch(
    name: str, kernel: Any, arguments: Sequence[Any], grid: Any, options: Mapping[str, Any]
) -> Handle:
    """Queue a kernel on the PEs that hold its tensors; programs are dealt to them round robin."""
    if grid is None:
        raise TypeError(f"launch of {name!r}: a Triton kernel has a grid, such as grid=(8,)")

    def queue(made: TritonKernel, given: Sequence[Any], programs: ProgramGrid) -> Handle:
        tensors = [each for each in given if isinstance(each, StoredTensor)]
        if not tensors:
            raise ValueError(
                f"launch of {name!r}: a kernel runs where its tensors are, so one argument must be "
                "a tensor"
            )
        pes = sorted(
            {(shard.spec.cube, shard.spec.pe) for tensor in tensors for shard in tensor.shards}
        )
        passed = tuple(
            Pointer(each.address, each.dtype) if isinstance(each, StoredTensor) else each
            for each in given
        )
        ElementReport.note(made)
        return launch_on(name, made, passed, tensors, pes[: programs.count], grid=programs)

    result = launched(TritonCall(kernel, arguments, options, grid), queue, timed=_time_ps)
    assert isinstance(result, Handle)
    return result


def _time_ps(start: Callable[[], Handle]) -> int:
    handle = start()
    running_rank().device.synchronize()
    return handle.pe_exec_ps
