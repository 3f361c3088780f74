"""The closed form of a ring beside the simulation of one."""

import pytest

from kernbench import DPPolicy, torch
from kernbench.explain.advice.launches import joint_launches, rank_launches
from kernbench.explain.advice.rules.algorithms import PeCosts, ring_ps
from kernbench.oracle.theory.topology_file import TopologyFile
from runtime.model.topology import load_topology
from tests.support.simulated_runs import recorded


@pytest.mark.parametrize(("nbytes", "tolerance"), [(64, 0.02), (1024, 0.02), (65536, 0.15)])
def test_a_ring_takes_its_steps_or_its_bytes(nbytes: int, tolerance: float):
    def program(_rank: int) -> None:
        torch.distributed.init_process_group("ahbm", algorithm="ring")
        dp = DPPolicy(num_cubes=1, num_pes=1)
        torch.distributed.all_reduce(torch.empty(nbytes // 4, dtype=torch.float32, dp=dp))

    records = recorded(program, 2, data=False)
    [launch] = joint_launches({sip: rank_launches(records, sip) for sip in records.sips})
    costs = PeCosts(TopologyFile(load_topology().values()), 4096, (0, 0))
    assert ring_ps(costs, 2, nbytes, 1) == pytest.approx(launch.time_ps, rel=tolerance)
