"""Operands that collectives refuse, with the errors of PyTorch and the values."""

from collections.abc import Callable

import pytest
import yaml

from runtime import DPPolicy, torch
from runtime.core.config.config_file import default_file
from runtime.core.errors import ConfigError
from tests.support.groups import FOUR_PES
from tests.support.world import simulate

dist = torch.distributed
ReduceOp = dist.ReduceOp
ARGUMENT = "Invalid function argument. Expected parameter"


def refused(
    call: Callable[[], object], *, sips: int = 2, algorithm: str = "ring"
) -> tuple[type[Exception], str]:
    """The error of a call that every rank makes in its group."""

    def program(rank: int) -> None:
        dist.init_process_group("ahbm", algorithm=algorithm)
        call()

    with pytest.raises((TypeError, ValueError, RuntimeError)) as raised:
        simulate(program, sips, topology=FOUR_PES)
    return raised.type, str(raised.value)


def tensor(
    *shape: int, dtype: torch.dtype = torch.float32, dp: DPPolicy | None = None
) -> torch.Tensor:
    return torch.empty(shape, dtype=dtype, dp=dp or DPPolicy(num_cubes=1, num_pes=1))


CALLS: dict[str, Callable[[], object]] = {
    "all_reduce": lambda: dist.all_reduce(tensor(4)),
    "reduce": lambda: dist.reduce(tensor(4), 0),
    "broadcast": lambda: dist.broadcast(tensor(4), 0),
    "all_gather": lambda: dist.all_gather([tensor(4)], tensor(4)),
    "all_gather_into_tensor": lambda: dist.all_gather_into_tensor(tensor(4), tensor(4)),
    "reduce_scatter_tensor": lambda: dist.reduce_scatter_tensor(tensor(4), tensor(4)),
    "all_to_all_single": lambda: dist.all_to_all_single(tensor(4), tensor(4)),
    "all_to_all": lambda: dist.all_to_all([tensor(4)], [tensor(4)]),
    "reduce_scatter": lambda: dist.reduce_scatter(tensor(4), [tensor(4)]),
    "gather": lambda: dist.gather(tensor(4), [tensor(4)]),
    "scatter": lambda: dist.scatter(tensor(4), [tensor(4)]),
    "barrier": dist.barrier,
    "send": lambda: dist.send(tensor(4), 1),
    "recv": lambda: dist.recv(tensor(4), 1),
    "isend": lambda: dist.isend(tensor(4), 1),
    "irecv": lambda: dist.irecv(tensor(4), 1),
}


@pytest.mark.parametrize("name", CALLS)
def test_every_call_needs_the_process_group(name: str) -> None:
    with pytest.raises(
        ValueError, match="Default process group has not been initialized, please make sure to call"
    ):
        simulate(lambda rank: CALLS[name](), 1, topology=FOUR_PES)


@pytest.mark.parametrize("name", sorted(set(CALLS) - {"send", "recv", "isend", "irecv"}))
def test_every_collective_works_on_one_rank(name: str) -> None:
    def program(rank: int) -> None:
        dist.init_process_group("ahbm", algorithm="ring")
        CALLS[name]()

    assert simulate(program, 1, topology=FOUR_PES).returned == {0: None}


def with_own_algorithm(module: str) -> str:
    """The file that ships, with the ring's queues for an algorithm `own` in `module`."""
    content = yaml.safe_load(default_file("ccl.yaml").read_text())
    del content["selection"]
    content["algorithms"] = {"own": content["algorithms"]["ring"] | {"module": module}}
    content["defaults"]["algorithm"] = "own"
    return yaml.safe_dump(content)


def test_an_algorithm_of_a_user_may_have_any_of_the_collectives() -> None:
    def program(rank: int) -> float:
        dist.init_process_group("ahbm")
        x = torch.full(5, rank)
        dist.broadcast(x, 1)
        with pytest.raises(
            RuntimeError, match="algorithm 'own' does not support all_reduce; none does"
        ):
            dist.all_reduce(x)
        return float(x.numpy().sum())

    world = simulate(
        program, 3, topology=FOUR_PES, ccl=with_own_algorithm("tests.support.own_algorithm")
    )
    assert world.returned == {0: 5, 1: 5, 2: 5}


def test_a_module_that_cannot_be_imported_is_an_error_of_the_file() -> None:
    def program(rank: int) -> None:
        dist.init_process_group("ahbm")
        dist.barrier()

    with pytest.raises(
        ConfigError,
        match=r"algorithms\.own\.module: 'my\.rings' cannot be imported: No module named 'my'",
    ):
        simulate(program, 1, topology=FOUR_PES, ccl=with_own_algorithm("my.rings"))


@pytest.mark.parametrize(
    "name", ["broadcast", "reduce", "all_gather_into_tensor", "all_to_all_single"]
)
def test_a_collective_that_an_algorithm_lacks_is_an_error_that_lists_algorithms(name: str) -> None:
    known = "ring, pairwise" if name == "all_to_all_single" else "ring, recursive_doubling"
    kind, text = refused(CALLS[name], sips=1, algorithm="intercube")
    assert (kind, text) == (
        RuntimeError,
        f"algorithm 'intercube' does not support {name}; those that do: {known}",
    )


RANKS: dict[str, tuple[Callable[[], object], str]] = {
    "root too high": (
        lambda: dist.broadcast(tensor(4), 2),
        "Invalid root rank: 2; the process group has ranks 0 to 1",
    ),
    "root negative": (
        lambda: dist.broadcast(tensor(4), -1),
        "Invalid root rank: -1; the process group has ranks 0 to 1",
    ),
    "root no number": (
        lambda: dist.reduce(tensor(4), True),
        "Invalid root rank: True; the process group has ranks 0 to 1",
    ),
    "destination": (
        lambda: dist.send(tensor(4), 2),
        "Invalid destination rank: 2; the process group has ranks 0 to 1",
    ),
    "source": (
        lambda: dist.recv(tensor(4), "0"),
        "Invalid source rank: '0'; the process group has ranks 0 to 1",
    ),
    "to itself": (
        lambda: dist.send(tensor(4), dist.get_rank()),
        (
            "Invalid destination rank: destination rank should not be the same as the rank "
            "of the current process."
        ),
    ),
    "from itself": (
        lambda: dist.recv(tensor(4), dist.get_rank()),
        (
            "Invalid source rank: source rank should not be the same as the rank of the "
            "current process."
        ),
    ),
}


@pytest.mark.parametrize("case", RANKS)
def test_a_rank_outside_the_world_is_named(case: str) -> None:
    call, text = RANKS[case]
    assert refused(call) == (ValueError, text)


@pytest.mark.parametrize("kind", [torch.int8, torch.int32], ids=repr)
@pytest.mark.parametrize("name", ["all_reduce", "reduce", "reduce_scatter_tensor"])
def test_integers_have_no_average(name: str, kind: torch.dtype) -> None:
    calls = {
        "all_reduce": lambda: dist.all_reduce(tensor(4, dtype=kind), op=ReduceOp.AVG),
        "reduce": lambda: dist.reduce(tensor(4, dtype=kind), 0, op=ReduceOp.AVG),
        "reduce_scatter_tensor": lambda: dist.reduce_scatter_tensor(
            tensor(2, dtype=kind), tensor(4, dtype=kind), op=ReduceOp.AVG
        ),
    }
    problem = f"Cannot use ReduceOp.AVG with integral inputs ({kind!r})"
    known = (
        "it has ReduceOp.SUM, ReduceOp.MAX, ReduceOp.MIN, ReduceOp.PRODUCT, ReduceOp.BAND, "
        "ReduceOp.BOR, ReduceOp.BXOR"
    )
    assert refused(calls[name]) == (TypeError, f"{problem}; {known}")


def test_bits_of_floating_point_elements_are_not_combined() -> None:
    problem = "Cannot use ReduceOp.BXOR with non-integral inputs (torch.float32)"
    known = "it has ReduceOp.SUM, ReduceOp.AVG, ReduceOp.MAX, ReduceOp.MIN, ReduceOp.PRODUCT"
    text = f"{problem}; {known}"
    assert refused(lambda: dist.all_reduce(tensor(4), ReduceOp.BXOR)) == (TypeError, text)


@pytest.mark.parametrize(
    ("op", "advice"),
    [
        ("ReduceOp.MX", "; did you mean 'ReduceOp.MAX'?"),
        (
            "sum",
            (
                "; known: ReduceOp.AVG, ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR, ReduceOp.MAX, "
                "ReduceOp.MIN, ReduceOp.PRODUCT, ReduceOp.SUM"
            ),
        ),
    ],
)
def test_an_operation_that_does_not_exist_names_those_that_do(op: object, advice: str) -> None:
    text = f"op {op!r} is not supported by reduce on ahbm{advice}"
    assert refused(lambda: dist.reduce(tensor(4), 0, op)) == (ValueError, text)


SIZES: dict[str, tuple[Callable[[], object], str]] = {
    "no list at the root of a gather": (
        lambda: dist.gather(tensor(4), None, dist.get_rank()),
        "Argument ``gather_list`` must be specified on destination rank.",
    ),
    "no list at the root of a scatter": (
        lambda: dist.scatter(tensor(4), None, dist.get_rank()),
        "Argument ``scatter_list`` must be specified on source rank.",
    ),
    "output of all_gather": (
        lambda: dist.all_gather_into_tensor(tensor(9), tensor(4)),
        "output tensor size must be equal to world_size times input tensor size: 9 is not 2 x 4",
    ),
    "input of reduce_scatter": (
        lambda: dist.reduce_scatter_tensor(tensor(4), tensor(9)),
        "input tensor must be the same size as output size times world size: 9 is not 4 x 2",
    ),
    "split of all_to_all": (
        lambda: dist.all_to_all_single(tensor(5), tensor(5)),
        "Tensor's dim 0 does not divide equally across group size: shape (5,), 2 ranks",
    ),
    "output of all_to_all": (
        lambda: dist.all_to_all_single(tensor(2, 3), tensor(4)),
        (
            "all_to_all_single with equal splits: both tensors must have one number of elements; "
            "the output has shape (2, 3), the input (4,)"
        ),
    ),
    "sum of split sizes": (
        lambda: dist.all_to_all_single(tensor(5), tensor(5), [2, 3], [2, 2]),
        ("Split sizes doesn't match total dim 0 size: input_split_sizes [2, 2], shape (5,)"),
    ),
    "number of split sizes": (
        lambda: dist.all_to_all_single(tensor(5), tensor(5), [5]),
        "Number of tensor splits not equal to group size: output_split_sizes [5], 2 ranks",
    ),
    "part for the own rank": (
        lambda: dist.all_to_all([tensor(2), tensor(2)], [tensor(3), tensor(3)]),
        "all_to_all: rank 0 sends itself a part of 3 elements and receives 2",
    ),
    "length of a list": (
        lambda: dist.all_gather([tensor(4)], tensor(4)),
        (
            "Tensor list input to scatter/gather must match number of collective "
            "participants: 1 tensors, 2 ranks"
        ),
    ),
    "shape in a list": (
        lambda: dist.all_gather([tensor(4), tensor(2, 2)], tensor(4)),
        (
            "All tensor operands to scatter/gather must have the same size: tensor_list[1] "
            "has shape (2, 2), tensor has shape (4,)"
        ),
    ),
    "type in a list": (
        lambda: dist.all_gather([tensor(4, dtype=torch.int8), tensor(4)], tensor(4)),
        (
            "Invalid usage of tensors with different dtypes: tensor_list[0] has torch.int8, "
            "tensor has torch.float32"
        ),
    ),
}
ROOTS: dict[str, tuple[Callable[[], object], str]] = {
    "list beside the root": (
        lambda: dist.gather(tensor(4), [tensor(4), tensor(4)], 0),
        (
            "Argument ``gather_list`` must NOT be specified on non-destination ranks.: rank 1 "
            "is not the destination rank 0"
        ),
    ),
    "list beside the source": (
        lambda: dist.scatter(tensor(4), [tensor(4), tensor(4)], 0),
        (
            "Argument ``scatter_list`` must NOT be specified on non-source ranks.: rank 1 is not "
            "the source rank 0"
        ),
    ),
}
KINDS: dict[str, tuple[Callable[[], object], str]] = {
    "type of the output": (
        lambda: dist.all_gather_into_tensor(tensor(8), tensor(4, dtype=torch.half)),
        "output tensor must have the same type as input tensor: torch.float32 is not torch.float16",
    ),
    "a tensor for a list": (
        lambda: dist.all_gather(tensor(8), tensor(4)),
        (
            f"{ARGUMENT} `tensor_list` of type List[torch.Tensor] but got <class "
            f"'runtime.torch.tensors.tensor.Tensor'> instead."
        ),
    ),
    "a list for a tensor": (
        lambda: dist.all_reduce([tensor(4)]),
        f"{ARGUMENT} `tensor` of type torch.Tensor but got <class 'list'> instead.",
    ),
    "nothing in a list": (
        lambda: dist.all_gather([tensor(4), None], tensor(4)),
        f"{ARGUMENT} `tensor_list[1]` of type torch.Tensor but got <class 'NoneType'> instead.",
    ),
}


@pytest.mark.parametrize("case", SIZES)
def test_sizes_that_do_not_match_are_errors_of_pytorch(case: str) -> None:
    call, text = SIZES[case]
    assert refused(call) == (ValueError, text)


@pytest.mark.parametrize("case", ROOTS)
def test_a_list_is_for_the_root_alone(case: str) -> None:
    call, text = ROOTS[case]
    assert refused(call) == (ValueError, text)


@pytest.mark.parametrize("case", KINDS)
def test_operands_of_another_type_are_errors_of_pytorch(case: str) -> None:
    call, text = KINDS[case]
    assert refused(call) == (TypeError, text)


def test_output_and_input_must_be_two_tensors() -> None:
    def call() -> None:
        one = tensor(4)
        dist.all_to_all_single(one, one)

    problem = "all_to_all_single: output and input are one tensor; the output must be another one"
    assert refused(call) == (ValueError, problem)
