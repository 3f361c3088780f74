import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import yaml

from runtime import DPPolicy, torch
from runtime.core.config.config_file import default_file
from runtime.core.errors import ConfigError
from tests.support.topologies import variant_text
from tests.support.world import simulate

dist = torch.distributed
TOPOLOGY = variant_text(
    sip__cube_mesh={"w": 2, "h": 1},
    cube__pe_layout__pe_per_corner=1,
    cube__pe_layout__corners=["NW"],
)


def ranks(program: Callable[[int], Any], sips: int = 2, **algorithm: object) -> dict[int, Any]:
    """The results of the ranks; `algorithm` changes the algorithm `ring` of the file."""
    content = yaml.safe_load(default_file("ccl.yaml").read_text())
    content["algorithms"]["ring"].update(algorithm)
    return simulate(program, sips, topology=TOPOLOGY, ccl=yaml.safe_dump(content)).returned


def test_a_group_has_rank_size_and_backend() -> None:
    def program(rank: int) -> tuple[object, ...]:
        before = dist.is_initialized()
        dist.init_process_group("ahbm")
        facts = (
            dist.get_rank(),
            dist.get_world_size(),
            dist.get_backend(),
            before,
            dist.is_initialized(),
        )
        dist.destroy_process_group()
        return (*facts, dist.is_initialized())

    assert ranks(program, 3) == {rank: (rank, 3, "ahbm", False, True, False) for rank in range(3)}


@pytest.mark.parametrize(
    "call",
    [
        dist.get_rank,
        dist.get_world_size,
        dist.get_backend,
        dist.barrier,
        lambda: dist.all_reduce(torch.zeros(2)),
    ],
    ids=["get_rank", "get_world_size", "get_backend", "barrier", "all_reduce"],
)
def test_a_call_before_init_is_the_error_of_pytorch(
    call: Callable[[], object],
) -> None:
    with pytest.raises(
        ValueError, match="Default process group has not been initialized, please make sure to call"
    ):
        ranks(lambda rank: call(), 1)


def test_init_twice_is_the_error_of_pytorch() -> None:
    def program(rank: int) -> None:
        dist.init_process_group("ahbm")
        dist.init_process_group("ahbm")

    with pytest.raises(ValueError, match="trying to initialize the default process group twice!"):
        ranks(program)


def test_a_group_can_be_left_and_joined_again() -> None:
    def program(rank: int) -> float:
        for _ in range(2):
            dist.init_process_group("ahbm", algorithm="ring")
            tensor = torch.full(3, rank + 1)
            dist.all_reduce(tensor)
            total = tensor.numpy()[0]
            dist.destroy_process_group()
        return float(total)

    assert ranks(program) == {0: 3, 1: 3}


def test_a_later_group_may_have_another_algorithm_beside_the_first_one() -> None:
    def program(rank: int) -> tuple[float, ...]:
        found: list[float] = []
        for algorithm in ("ring", "tree", "ring"):
            dist.init_process_group("ahbm", algorithm=algorithm)
            tensor = torch.full(3, rank + 1)
            dist.all_reduce(tensor)
            found.append(float(tensor.numpy()[0]))
            dist.destroy_process_group()
        return tuple(found)

    assert ranks(program) == {0: (3, 3, 3), 1: (3, 3, 3)}


@pytest.mark.parametrize("backend", ["nccl", "ahmb"])
def test_an_unknown_backend_is_an_error_with_the_name_of_ours(backend: str) -> None:
    with pytest.raises(ValueError, match=rf"Invalid backend: '{backend}'.*ahbm"):
        ranks(lambda rank: dist.init_process_group(backend))


def test_an_unknown_algorithm_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match=re.escape("no algorithm 'rings'; did you mean 'ring'?")):
        ranks(lambda rank: dist.init_process_group(algorithm="rings"))


def test_an_algorithm_with_another_world_size_than_that_of_the_run_is_an_error_of_its_key() -> None:
    content = yaml.safe_load(default_file("ccl.yaml").read_text())
    content["algorithms"]["tree"]["world_size"] = 1
    problem = (
        "algorithms.tree.world_size: is 1, but the run has started 2 ranks; with another algorithm "
        "than defaults.algorithm, its world size must be that of the run"
    )
    with pytest.raises(ConfigError, match=re.escape(problem)):
        simulate(
            lambda rank: dist.init_process_group(algorithm="tree"),
            2,
            topology=TOPOLOGY,
            ccl=yaml.safe_dump(content),
        )


def test_more_ranks_than_sips_are_an_error_of_the_key() -> None:
    text = default_file("ccl.yaml").read_text().replace("world_size: null", "world_size: 3", 1)
    with pytest.raises(
        ConfigError,
        match=re.escape(
            "defaults.world_size: is 3, but --sips is 2, and a SIP runs one rank; null stands for "
            "one rank on every SIP"
        ),
    ):
        simulate(lambda rank: None, 2, topology=TOPOLOGY, ccl=text)


def test_the_sips_beyond_the_world_size_have_no_rank_and_forward_for_the_others() -> None:
    text = default_file("ccl.yaml").read_text().replace("world_size: null", "world_size: 2", 1)

    def program(rank: int) -> tuple[int, list[float]]:
        dist.init_process_group()
        x = torch.full((4,), rank + 1.0)
        dist.all_reduce(x)
        return dist.get_world_size(), x.numpy().tolist()

    world = simulate(program, 4, topology=TOPOLOGY, ccl=text)
    assert world.returned == {rank: (2, [3.0] * 4) for rank in (0, 1)}
    assert [report.finished for report in world.done.sips] == [True] * 4


def test_a_root_cube_that_does_not_exist_is_an_error_of_the_file() -> None:
    with pytest.raises(
        ConfigError, match=re.escape("algorithms.ring.root_cube: is 2, the last cube is 1")
    ):
        ranks(lambda rank: dist.init_process_group(algorithm="ring"), root_cube=2)


@pytest.mark.parametrize("op", ["sum", "max", None])
def test_only_the_operations_that_exist_are_taken(op: object) -> None:
    def program(rank: int) -> None:
        dist.init_process_group("ahbm")
        dist.all_reduce(torch.zeros(2), op=op)

    with pytest.raises(ValueError, match=rf"op {op!r} is not supported by all_reduce on ahbm"):
        ranks(program)


def test_a_wrong_placement_is_an_error_with_the_requirement_of_the_algorithm() -> None:
    def program(rank: int) -> None:
        dist.init_process_group("ahbm", algorithm="intercube")
        dist.all_reduce(torch.zeros(2, dp=DPPolicy(num_cubes=1, num_pes=1)))

    problem = (
        "all_reduce with algorithm 'intercube': needs one shard on pe 0 of each of 2 cubes, "
        "the tensor has 1 shards"
    )
    with pytest.raises(ValueError, match=re.escape(problem)):
        ranks(program)


def test_a_rank_can_set_its_own_device_only() -> None:
    def program(rank: int) -> tuple[int, int, int]:
        torch.ahbm.set_device(rank)
        torch.ahbm.set_device(f"ahbm:{rank}")
        torch.ahbm.set_device(torch.device("ahbm", rank))
        torch.ahbm.synchronize(rank)
        assert torch.ahbm.is_available()
        torch.accelerator.set_device_index(rank)
        with pytest.raises(
            RuntimeError, match=f"invalid device ordinal {1 - rank}: this rank owns SIP {rank}"
        ):
            torch.ahbm.set_device(1 - rank)
        return (
            torch.ahbm.current_device(),
            torch.accelerator.current_device_index(),
            torch.ahbm.device_count(),
        )

    assert ranks(program) == {0: (0, 0, 2), 1: (1, 1, 2)}


def test_installing_queues_takes_simulated_time() -> None:
    def program(rank: int) -> int:
        dist.init_process_group("ahbm")
        return torch.ahbm.elapsed_ps()

    assert all(elapsed_ps > 0 for elapsed_ps in ranks(program).values())


def test_all_reduce_returns_immediately_and_a_read_of_the_tensor_waits() -> None:
    def program(rank: int) -> tuple[int, int, np.ndarray]:
        dist.init_process_group("ahbm")
        tensor = torch.full(4, rank)
        before_ps = torch.ahbm.elapsed_ps()
        dist.all_reduce(tensor)
        return torch.ahbm.elapsed_ps() - before_ps, torch.ahbm.elapsed_ps(), tensor.numpy()

    for queued_ps, _, values in ranks(program).values():
        assert queued_ps == 0
        assert (values == 1).all()


def test_a_tensor_at_the_address_of_the_rings_is_not_overwritten() -> None:
    def program(rank: int) -> bool:
        state_of_tcm = torch.zeros(64)
        dist.init_process_group("ahbm", algorithm="ring")
        tensor = torch.full(64, rank)
        dist.all_reduce(tensor)
        return bool((state_of_tcm.numpy() == 0).all())

    assert ranks(program, buffer_kind="hbm") == {0: True, 1: True}
