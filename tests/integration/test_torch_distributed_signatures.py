"""`torch.distributed` has the signatures of PyTorch 2.9, "Distributed communication package"."""

from collections.abc import Callable
from datetime import timedelta
from inspect import Parameter, signature
from typing import Any

import pytest

from runtime import torch
from tests.support.topologies import variant_text
from tests.support.world import simulate

dist = torch.distributed
ONE_PE = variant_text(
    sip__cube_mesh={"w": 1, "h": 1},
    cube__pe_layout__pe_per_corner=1,
    cube__pe_layout__corners=["NW"],
)
DOCUMENTED = {
    "init_process_group": "backend init_method timeout world_size rank",
    "new_group": "ranks timeout backend",
    "destroy_process_group": "group",
    "get_rank": "group",
    "get_world_size": "group",
    "get_backend": "group",
    "get_group_rank": "group global_rank",
    "get_global_rank": "group group_rank",
    "get_process_group_ranks": "group",
    "is_initialized": "",
    "is_available": "",
    "send": "tensor dst group tag group_dst",
    "recv": "tensor src group tag group_src",
    "isend": "tensor dst group tag group_dst",
    "irecv": "tensor src group tag group_src",
    "batch_isend_irecv": "p2p_op_list",
    "P2POp": "op tensor peer group tag group_peer",
    "broadcast": "tensor src group async_op group_src",
    "all_reduce": "tensor op group async_op",
    "reduce": "tensor dst op group async_op group_dst",
    "all_gather": "tensor_list tensor group async_op",
    "all_gather_into_tensor": "output_tensor input_tensor group async_op",
    "reduce_scatter_tensor": "output input op group async_op",
    "all_to_all_single": "output input output_split_sizes input_split_sizes group async_op",
    "all_to_all": "output_tensor_list input_tensor_list group async_op",
    "gather": "tensor gather_list dst group async_op group_dst",
    "scatter": "tensor scatter_list src group async_op group_src",
    "reduce_scatter": "output input_list op group async_op",
    "broadcast_object_list": "object_list src group device group_src",
    "all_gather_object": "object_list obj group",
    "gather_object": "obj object_gather_list dst group group_dst",
    "scatter_object_list": (
        "scatter_object_output_list scatter_object_input_list src group group_src"
    ),
    "send_object_list": "object_list dst group device group_dst",
    "recv_object_list": "object_list src group device group_src",
    "barrier": "group async_op device_ids",
}


@pytest.mark.parametrize("name", DOCUMENTED)
def test_arguments_have_the_documented_names_and_order(name: str) -> None:
    parameters = signature(getattr(dist, name)).parameters.values()
    assert [
        each.name for each in parameters if each.kind is not Parameter.KEYWORD_ONLY
    ] == DOCUMENTED[name].split()


def test_every_function_is_documented_here() -> None:
    own = {"BACKEND", "GroupMember", "ReduceOp", "Work", "get_algorithm", "get_order", "group"}
    assert set(dist.__all__) == set(DOCUMENTED) | own


def ranks(program: Callable[[int], Any], sips: int = 2) -> list[Any]:
    returned = simulate(program, sips, topology=ONE_PE).returned
    return [returned[rank] for rank in range(sips)]


def test_true_arguments_about_the_ranks_may_stay_in_a_port() -> None:
    def program(rank: int) -> tuple[int, int]:
        dist.init_process_group("ahbm", "env://", timedelta(seconds=30), 2, rank)
        return dist.get_rank(dist.group.WORLD), dist.get_world_size()

    assert ranks(program) == [(0, 2), (1, 2)]


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        (
            {"world_size": 3},
            "world_size is 3, but the run has started 2 ranks; omit it",
        ),
        (
            {"rank": 2, "world_size": 2},
            "rank is 2, but this process is rank 0 of 2; omit it",
        ),
        (
            {"init_method": "tcp://localhost:23456"},
            "the run has started its ranks already; omit it or pass 'env://'",
        ),
    ],
)
def test_a_false_argument_is_an_error_with_the_true_value(
    given: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(ValueError, match=complaint):
        ranks(lambda rank: dist.init_process_group(**given))


def test_a_positional_async_op_returns_work() -> None:
    def program(rank: int) -> float:
        dist.init_process_group()
        tensor = torch.full(2, rank + 1)
        work = dist.all_reduce(tensor, dist.ReduceOp.SUM, None, True)
        assert work is not None
        work.wait()
        return float(tensor.numpy()[0])

    assert ranks(program) == [3, 3]


def test_split_sizes_may_be_equal_empty_or_absent() -> None:
    def program(rank: int, *sizes: list[int]) -> list[float]:
        dist.init_process_group()
        output = torch.zeros(4)
        dist.all_to_all_single(output, torch.full(4, float(rank)), *sizes)
        return [float(value) for value in output.numpy()]

    for sizes in ([[2, 2], [2, 2]], [[], []], []):
        assert ranks(lambda rank, sizes=sizes: program(rank, *sizes)) == [[0, 0, 1, 1]] * 2


def test_a_barrier_is_for_the_device_of_the_rank() -> None:
    def program(rank: int) -> None:
        dist.init_process_group()
        dist.barrier(device_ids=[rank])
        dist.barrier(device_ids=[1])

    with pytest.raises(
        ValueError, match=r"barrier on device_ids \[1\]: this rank has the device 0"
    ):
        ranks(program)


@pytest.mark.parametrize(
    ("name", "near"), [("all_to_al", "all_to_all"), ("all_gathers", "all_gather")]
)
def test_a_name_that_does_not_exist_is_an_error_with_the_nearest_name(name: str, near: str) -> None:
    with pytest.raises(
        AttributeError,
        match=rf"^kernbench's torch\.distributed has no {name}; did you mean '{near}'\?$",
    ):
        getattr(dist, name)


@pytest.mark.parametrize("timeout", [30, "30 s", 2.5])
def test_a_timeout_of_another_type_is_the_error_of_pytorch(timeout: Any) -> None:
    text = "Expected timeout argument to be of type datetime.timedelta, got"
    with pytest.raises(TypeError, match=text):
        ranks(lambda rank: dist.init_process_group("ahbm", timeout=timeout))


def test_outside_a_run_the_missing_variable_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
    for name in names:
        monkeypatch.delenv(name, raising=False)
    for name in names:
        problem = f"environment variable {name} expected, but not set; start the script with"
        with pytest.raises(ValueError, match=rf"^Error initializing .* env:// .*: {problem}"):
            dist.init_process_group("ahbm")
        monkeypatch.setenv(name, "1")
    with pytest.raises(RuntimeError, match="no rank is running here"):
        dist.init_process_group("ahbm")
    monkeypatch.delenv("RANK")
    monkeypatch.delenv("WORLD_SIZE")
    with pytest.raises(ValueError, match="environment variable WORLD_SIZE expected"):
        dist.init_process_group("ahbm", rank=0)
    with pytest.raises(ValueError, match="'tcp://host:1': ranks do not meet at an address"):
        dist.init_process_group("ahbm", "tcp://host:1")
