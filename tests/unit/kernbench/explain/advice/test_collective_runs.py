"""The time of a collective by another algorithm: that of the same call in a program."""

import pytest

from kernbench import DPPolicy, torch
from kernbench.explain.advice.collective_runs import SimulatedCall, simulated_ps
from kernbench.explain.advice.launches import joint_launches, rank_launches
from tests.support.simulated_runs import recorded
from tests.support.topologies import default_text

RANKS = 4
dist = torch.distributed


def called(name: str, count: int) -> None:
    """A call whose input has `count` elements, on one PE of a rank."""
    one_pe = DPPolicy(num_cubes=1, num_pes=1)

    def tensor(elements: int) -> torch.Tensor:
        return torch.empty(elements, dtype=torch.float32, dp=one_pe)

    match name:
        case "broadcast":
            dist.broadcast(tensor(count), 1)
        case "all_gather_into_tensor":
            dist.all_gather_into_tensor(tensor(count * RANKS), tensor(count))
        case "reduce_scatter_tensor":
            dist.reduce_scatter_tensor(tensor(count // RANKS), tensor(count))
        case _:
            dist.all_to_all_single(tensor(count), tensor(count))


@pytest.mark.parametrize(
    ("name", "algorithm"),
    [
        ("broadcast", "recursive_doubling"),
        ("all_gather_into_tensor", "ring"),
        ("reduce_scatter_tensor", "ring"),
        ("all_to_all_single", "pairwise"),
    ],
)
def test_a_call_alone_takes_as_long_as_in_a_program(name: str, algorithm: str) -> None:
    def program(_rank: int) -> None:
        dist.init_process_group("ahbm", algorithm=algorithm)
        called(name, 1024)

    records = recorded(program, RANKS, data=False)
    *_, launch = joint_launches({sip: rank_launches(records, sip) for sip in records.sips})
    of = SimulatedCall(name, algorithm, RANKS, 4096, cubes=(0,), pes=1, root=1)
    assert launch.name == f"{name}.{algorithm}"
    assert simulated_ps(default_text(), of) == launch.time_ps


def test_an_algorithm_without_the_collective_has_no_time() -> None:
    of = SimulatedCall("broadcast", "tree", RANKS, 4096, cubes=(0,), pes=1, root=0)
    assert simulated_ps(default_text(), of) is None
