"""Topologies, mappers, validators and kernels of a user which return wrong values."""

import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest
import yaml

from runtime import torch
from runtime.ccl.algorithms import ring
from runtime.ccl.mappers import Mapping
from runtime.core.config.config_file import default_file
from runtime.core.errors import ConfigError
from tests.support.topologies import variant_text
from tests.support.world import simulate

dist = torch.distributed
ONE_PE = variant_text(
    sip__cube_mesh={"w": 1, "h": 1},
    cube__pe_layout__pe_per_corner=1,
    cube__pe_layout__corners=["NW"],
)
OWN = "algorithm_of_a_user"


@pytest.fixture
def own() -> Iterator[ModuleType]:
    """A module as a user may write it, with the kernels of the ring."""
    module = ModuleType(OWN)
    vars(module).update({"arguments": ring.arguments, "all_reduce": ring.all_reduce})
    sys.modules[OWN] = module
    yield module
    del sys.modules[OWN]


def complaint(collective: Callable[[torch.Tensor], object] = dist.all_reduce, **entry: str) -> str:
    """The error of a collective with the algorithm `own`: that of `ring` with other entries."""
    content = yaml.safe_load(default_file("ccl.yaml").read_text())
    content["algorithms"]["own"] = content["algorithms"]["ring"] | entry

    def program(rank: int) -> None:
        dist.init_process_group("ahbm", algorithm="own")
        collective(torch.zeros(4))

    with pytest.raises(ConfigError) as raised:
        simulate(program, 2, topology=ONE_PE, ccl=yaml.safe_dump(content))
    return str(raised.value).partition("algorithms.own.")[2]


@pytest.mark.parametrize(
    "answer",
    [None, ["E"], {0: 1}, {"E": 1.0}, {"E": 2}, {"E": -1}, {"E": 0}, {"E": True}],
    ids=repr,
)
def test_a_topology_gives_directions_and_other_ranks(own: ModuleType, answer: object) -> None:
    own.near = lambda rank, w, h: answer
    rule = "it has to be a dict of directions and other ranks of 0 to 1"
    assert complaint(topology=f"{OWN}:near").endswith(f"(0, 2, 1) returned {answer!r}; {rule}")


@pytest.mark.parametrize("part", ["topology", "mapper", "validator"])
def test_a_part_is_a_function(own: ModuleType, part: str) -> None:
    own.number = 7
    assert complaint(**{part: f"{OWN}:number"}) == f"{part}: 7 is not a function"


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (None, "returned None; it has to be a runtime.ccl.mappers:Mapping"),
        (
            Mapping(((0, 1),), {}, frozenset()),
            "with (cube, pe) (0, 1), which no SIP has: the last one is (0, 0)",
        ),
        (
            Mapping(((0, 0),), {(0, 0): {"x": (3, 0)}}, frozenset()),
            "with (cube, pe) (3, 0), which has neighbours and is not among its participants",
        ),
    ],
)
def test_a_mapper_returns_a_mapping_of_existing_pes(
    own: ModuleType, answer: object, message: str
) -> None:
    own.places = lambda topology, root_cube: answer
    assert complaint(mapper=f"{OWN}:places").endswith(message)


def test_a_validator_refuses_with_an_error_and_not_with_an_answer(own: ModuleType) -> None:
    own.suits = lambda shards, participants: False
    rule = "it has to return None, or raise a ValueError with the problem of the placement"
    assert complaint(validator=f"{OWN}:suits").endswith(f"returned False; {rule}")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"arguments": None},
            "module: 'algorithm_of_a_user' has no function arguments(group, itemsize)",
        ),
        (
            {"arguments": lambda group, itemsize: 5},
            "module: algorithm_of_a_user.arguments returned 5; it has to be a tuple",
        ),
        (
            {"arguments": lambda group, itemsize: (1,)},
            (
                "is called with 3 operands and the 1 that arguments() returned: missing a "
                "required argument: '_message'"
            ),
        ),
        (
            {"all_reduce": lambda shard: None},
            (
                "is called with 3 operands and the 2 that arguments() returned: too many "
                "positional arguments"
            ),
        ),
    ],
)
def test_kernel_and_arguments_fit_together(
    own: ModuleType, change: dict[str, Any], message: str
) -> None:
    vars(own).update(change)
    assert complaint(module=OWN).endswith(message)


def test_a_collective_that_is_no_function_is_none(own: ModuleType) -> None:
    own.broadcast = 5
    with pytest.raises(
        RuntimeError,
        match="algorithm 'own' does not support broadcast; those that do: recursive_doubling, ring",
    ):
        complaint(lambda tensor: dist.broadcast(tensor, 0), module=OWN)


def test_an_error_of_arguments_is_reported_unchanged(own: ModuleType) -> None:
    def arguments(group: object, itemsize: int) -> tuple[int, ...]:
        raise ValueError("the world size has to be odd, it is 2")

    own.arguments = arguments
    with pytest.raises(ValueError, match="the world size has to be odd, it is 2"):
        complaint(module=OWN)
