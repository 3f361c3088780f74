"""The time of a collective by another algorithm: a simulation of the collective alone.

Closed forms of collectives are asymptotic: they leave out the commands of messages that overlap, so
the difference of two algorithms can be wrong by more than its size. A simulation on the machine of
the run has all of them. It runs the calls of `perf`, and no program of a user.
"""

from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from kernbench import torch
from kernbench.benches.collective_perf.calls import allocate, call
from kernbench.benches.collective_perf.collective import (
    COLLECTIVES,
    Collective,
    PerfCase,
    PerfParameters,
)
from kernbench.explain.advice.launches import joint_launches, rank_launches
from kernbench.explain.records.collected import simulated_records
from kernbench.simulation import simulate
from runtime.core.errors import KernbenchError

COLLECTIVE_OF_CALL: Mapping[str, Collective] = {
    each.call: each for each in COLLECTIVES.values() if each.call
}
"""The collectives that can be simulated, by the names of their calls and kernels."""
_DTYPE, _ITEM_BYTES = "float", 4


class SimulatedCall(NamedTuple):
    """A call of `torch.distributed` on all ranks.

    The input of a rank has `nbytes`, as float32, over the PEs of `cubes`, `pes` of each.
    """

    name: str
    algorithm: str
    ranks: int
    nbytes: int
    cubes: tuple[int, ...]
    pes: int
    root: int


@cache
def simulated_ps(topology: str, of: SimulatedCall) -> int | None:
    """The time of the kernels of a call on a topology file; None if it does not run there."""
    case, parameters = _case(of)

    def program(_rank: int) -> None:
        torch.distributed.init_process_group("ahbm", algorithm=of.algorithm)
        call(case, allocate(case, parameters))()

    try:
        run = simulate(program, of.ranks, topology=topology, data=False, record=True)
    except (KernbenchError, ValueError, RuntimeError):
        # An algorithm may need another number of ranks, or elements for each of its parts.
        return None
    records = simulated_records(of.ranks, run.time_ps, run.rows, run.texts)
    launches = joint_launches({sip: rank_launches(records, sip) for sip in range(of.ranks)})
    kernels = [each for each in launches if each.name == f"{of.name}.{of.algorithm}"]
    return kernels[-1].time_ps if kernels else None


def _case(of: SimulatedCall) -> tuple[PerfCase, PerfParameters]:
    collective = COLLECTIVE_OF_CALL[of.name]
    op = "sum" if collective.reduces else "none"
    cubes = ",".join(map(str, of.cubes))
    one = PerfCase(collective, of.ranks, 1, _DTYPE, op, of.root)
    case = PerfCase(
        collective=collective,
        ranks=of.ranks,
        count=of.nbytes // (one.input_rows * _ITEM_BYTES),
        dtype_name=_DTYPE,
        op=op,
        root=of.root,
    )
    parameters = PerfParameters(
        collective=collective.name,
        min_bytes=case.size_bytes,
        max_bytes=case.size_bytes,
        step_bytes=0,
        step_factor=2,
        iters=1,
        warmup=0,
        check=0,
        op=op,
        dtype=_DTYPE,
        root=of.root,
        algorithm=of.algorithm,
        cubes=cubes,
        pes=of.pes,
    )
    return case, parameters
