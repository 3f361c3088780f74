"""The arguments of the kernels of an algorithm."""

from dataclasses import dataclass

import pytest

from runtime.ccl.algorithm_module import complete
from runtime.ccl.config import load_ccl
from runtime.ccl.group import Group
from runtime.core.errors import ConfigError
from runtime.model.topology import load_topology

GROUP = Group(0, (0, 1), load_ccl().resolve("ring"), load_topology(sips=2))


def takes_one(operand: object) -> None:
    """A kernel without the arguments of an algorithm."""
    del operand


@dataclass
class Unhashable:
    """A kernel that is no function, of a class that defines equality alone."""

    def __call__(self, *arguments: object) -> None:
        """Accept anything."""


def test_each_call_with_a_wrong_number_of_arguments_is_refused() -> None:
    messages = set[str]()
    for _ in range(2):
        with pytest.raises(ConfigError) as raised:
            complete(takes_one, (1, 2), GROUP, 2, "a.yaml")
        messages.add(str(raised.value))
    (message,) = messages
    assert "takes_one(operand: object) -> None is called with 2 operands" in message
    assert message.endswith("too many positional arguments")


def test_a_kernel_may_be_an_object_without_a_hash() -> None:
    operands = (1, 2)
    assert complete(Unhashable(), operands, GROUP, 2, "a.yaml")[:2] == operands
