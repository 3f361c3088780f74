"""Measures one call of the study."""

from collections.abc import Sequence

import numpy as np

from kernbench import DPPolicy, torch
from kernbench.benches.collective_perf.cubes import nearest_cubes
from kernbench.oracle.theory.collectives.collective_forms import CollectiveTimes
from kernbench.oracle.theory.topology_file import TopologyFile
from kernbench.simulation import simulate
from kernbench.studies.all_reduce import kernel_span
from kernbench.studies.ccl_algorithms.measurement import CALLS, expected, shard
from kernbench.studies.collective_forms.points import FormPoint
from kernbench.studies.collective_forms.rows import FormRow
from runtime.core.trace import OpRecord
from runtime.model.topology import parse_topology

dist = torch.distributed


def measure(point: FormPoint) -> FormRow:
    """Simulate one point. The ranks do not meet before the call, so all kernels start together."""
    call, topology = point.call, parse_topology(point.topology, "topology.yaml")
    cubes = nearest_cubes(topology)[:1] if point.pes == 1 else tuple(range(topology.cubes))
    pes = point.pes // len(cubes)
    policy = DPPolicy(cube="column_wise", pe="column_wise", cubes=cubes, num_pes=pes)
    inputs = [shard(call, rank) for rank in range(point.ranks)] if point.is_checked else []

    def main(rank: int) -> int:
        dist.init_process_group("ahbm", algorithm=call.algorithm)
        case = call.case
        source = (
            torch.from_numpy(inputs[rank], dp=policy)
            if inputs
            else torch.empty(case.input_rows, case.count, dtype=torch.float16, dp=policy)
        )
        target = torch.zeros(case.output_rows, case.count, dtype=torch.float16, dp=policy)
        changed = CALLS[point.collective](source, target)
        if not inputs:
            torch.ahbm.synchronize()
            return 0
        return int(np.count_nonzero(changed.numpy() != expected(point.collective, rank, inputs)))

    kernels = list[OpRecord]()

    def keep_kernels(_sip: int, records: Sequence[OpRecord]) -> None:
        kernels.extend(each for each in records if each.engine == "pe_cpu.collective")

    # All ranks in this process: worker processes simulate different points. The whole op log of
    # 2,048 PEs would need gigabytes.
    returned = simulate(
        main,
        point.ranks,
        topology=point.topology,
        ccl=point.ccl,
        data=point.is_checked,
        on_records=keep_kernels,
    ).returned
    time_ps, skew_ps = kernel_span(kernels)
    theory = CollectiveTimes(
        TopologyFile.of(point.topology), tuple((cube, pe) for cube in cubes for pe in range(pes))
    )
    return FormRow(
        collective=point.collective,
        pes=point.pes,
        ranks=point.ranks,
        nbytes=point.nbytes,
        time_ps=time_ps,
        form_ps=theory.form_ps(point.collective, point.ranks, call.case.size_bytes),
        skew_ps=skew_ps,
        wrong=sum(returned.values()) if point.is_checked else None,
    )
